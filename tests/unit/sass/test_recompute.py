"""Registers that were overwritten, computed again from what made them."""

from __future__ import annotations

import pytest

from crashlab.sass.recompute import Recomputed, recompute

from .listing import BASE, listing, pc_of
from .recorded import faults

FAULTS = faults()


def again(
    text: str,
    registers: str,
    values: dict[str, int | None],
    *,
    fault: str = "STG",
    lane: str = "NOP",
    straight: bool = False,
) -> Recomputed:
    lines = listing(text)
    names = registers.split()
    return recompute(lines, pc_of(lines, fault), pc_of(lines, lane), names, values, straight=straight)


MADE = """S2R R0, SR_TID.X
    {between}
    LEA R2, R0, R8, 0x2
    STG.E [R2.64], R5
    MOV R2, RZ
    NOP
    EXIT"""


def test_a_register_is_evaluated_from_what_survives() -> None:
    found = again(MADE.format(between="NOP"), "R2", {"R0": 5, "R8": 0x1000, "R2": 0}, lane="EXIT")
    assert found.values == {"R2": 0x1014}
    assert [step.text for step in found.steps] == ["LEA R2, R0, R8, 0x2"]
    assert found.steps[0].pc == BASE + 32
    assert found.steps[0].gave == (("R2", 0x1014),)


def test_what_survives_is_taken_from_the_dump() -> None:
    found = again("STG.E [R2.64], R5\nNOP\nEXIT", "R2 R3", {"R2": 7, "R3": 8})
    assert found == Recomputed({"R2": 7, "R3": 8})


def test_a_source_that_was_overwritten_as_well_is_made_again() -> None:
    text = """IADD3 R0, R6, 0x3, RZ
        LEA R2, R0, R8, 0x2
        MOV R0, RZ
        STG.E [R2.64], R5
        MOV R2, RZ
        NOP
        EXIT"""
    assert again(text, "R2", {"R6": 2, "R8": 0, "R0": 0, "R2": 0}).values == {"R2": 20}


def test_constants_and_special_registers_may_be_given() -> None:
    text = """S2R R0, SR_TID.X
        LDC.64 R2, c[0x0][0x210]
        IMAD.WIDE.U32 R2, R0, 0x8, R2
        STG.E [R2.64], R5
        LDC.64 R2, c[0x0][0x218]
        MOV R0, RZ
        NOP
        EXIT"""
    given = {"SR_TID.X": 3, "c[0x0][0x210]": 0xFFFFFFF8, "c[0x0][0x214]": 0x7F}
    assert again(text, "R2 R3", given).values == {"R2": 0x10, "R3": 0x80}
    lost = again(text, "R2 R3", {"SR_TID.X": 3})
    assert lost.values is None
    assert lost.reason is not None


@pytest.mark.parametrize(("guard", "value"), [("@P0", {"P0": 1}), ("@!P0", {"P0": 0})])
def test_a_guarded_definition_counts_when_its_guard_was_on(guard: str, value: dict[str, int | None]) -> None:
    text = f"MOV R2, R7\n{guard} MOV R2, R6\nSTG.E [R2.64], R5\nMOV R2, RZ\nNOP\nEXIT"
    on = again(text, "R2", {"R6": 66, "R7": 77, **value})
    off = again(text, "R2", {"R6": 66, "R7": 77, "P0": 1 - (value["P0"] or 0)})
    assert on.values == {"R2": 66}
    assert off.values == {"R2": 77}
    assert again(text, "R2", {"R6": 66, "R7": 77}).values is None


def test_a_carry_chain_gives_the_upper_half() -> None:
    text = """IADD3 R2, P0, R6, R8, RZ
        IADD3.X R3, R7, R9, RZ, P0, !PT
        STG.E [R2.64], R5
        LDC.64 R2, c[0x0][0x210]
        ISETP.NE.AND P0, PT, R5, RZ, PT
        NOP
        EXIT"""
    values = {"R6": 0xFFFFFFFF, "R7": 1, "R8": 2, "R9": 0}
    assert again(text, "R2 R3", values).values == {"R2": 1, "R3": 2}


class TestRefusals:
    def test_a_source_that_is_lost(self) -> None:
        text = "IADD3 R2, R2, 0x4, RZ\nSTG.E [R2.64], R5\nMOV R2, RZ\nNOP\nEXIT"
        found = again(text, "R2", {"R2": 0})
        assert found.values is None
        assert "R2 was overwritten" in (found.reason or "")

    def test_an_instruction_that_cannot_be_evaluated(self) -> None:
        text = "MUFU.RCP R2, R6\nSTG.E [R2.64], R5\nMOV R2, RZ\nNOP\nEXIT"
        found = again(text, "R2", {"R6": 1})
        assert found.values is None
        assert "MUFU.RCP" in (found.reason or "")

    def test_a_value_that_came_from_memory(self) -> None:
        text = "LDG.E R2, [R6.64]\nSTG.E [R2.64], R5\nMOV R2, RZ\nNOP\nEXIT"
        assert again(text, "R2", {"R6": 1, "R7": 0}).values is None

    def test_an_unknown_opcode_on_the_way_back(self) -> None:
        text = "MOV R2, R6\nFROB R9\nSTG.E [R2.64], R5\nMOV R2, RZ\nNOP\nEXIT"
        assert again(text, "R2", {"R6": 1}).values is None

    def test_an_unknown_opcode_on_the_way_on(self) -> None:
        text = "MOV R2, R6\nSTG.E [R2.64], R5\nFROB R9\nNOP\nEXIT"
        assert again(text, "R2", {"R6": 1, "R2": 1}).values is None

    def test_a_definition_behind_a_call(self) -> None:
        text = "MOV R2, R6\nCALL.ABS.NOINC R8\nSTG.E [R2.64], R5\nMOV R2, RZ\nNOP\nEXIT"
        assert again(text, "R2", {"R6": 1}).values is None

    def test_one_of_two_ways_may_have_defined_it(self) -> None:
        text = "MOV R2, R6\n@P0 BRA <on>\nMOV R2, R7\non: STG.E [R2.64], R5\nMOV R2, RZ\nNOP\nEXIT"
        assert again(text, "R2", {"R6": 1, "R7": 1, "P0": 0}).values is None

    def test_a_lane_that_may_not_have_executed_the_fault(self) -> None:
        text = "MOV R2, R6\n@P0 BRA <on>\nSTG.E [R2.64], R5\non: MOV R2, RZ\nNOP\nEXIT"
        found = again(text, "R2", {"R6": 1})
        assert found.values is None
        assert "may not have executed" in (found.reason or "")
        assert again(text, "R2", {"R6": 1}, straight=True).values == {"R2": 1}

    def test_a_store_whose_code_goes_on_somewhere_unknown(self) -> None:
        text = "MOV R2, R6\nSTG.E [R2.64], R5\nMOV R2, RZ\nNOP\nBRX R8 -0x10"
        assert again(text, "R2", {"R6": 1}).values is None
        assert again(text, "R2", {"R6": 1}, straight=True).values == {"R2": 1}

    def test_pcs_outside_of_the_code(self) -> None:
        lines = listing("STG.E [R2.64], R5\nEXIT")
        assert recompute(lines, BASE, 0x9990, ["R2"], {}).values is None
        assert recompute(lines, BASE, None, ["R2"], {}).values is None

    def test_a_lane_that_cannot_be_reached(self) -> None:
        text = "NOP\nBRA <other>\nSTG.E [R2.64], R5\nEXIT\nother: MOV R1, R2\nEXIT"
        assert again(text, "R2", {"R2": 1}, lane="MOV R1").values is None

    def test_a_long_chain_ends(self) -> None:
        chain = "\n".join(f"IADD3 R{i + 1}, R{i}, 0x1, RZ\nMOV R{i}, RZ" for i in range(10, 90))
        found = again(f"{chain}\nSTG.E [R90.64], R5\nMOV R90, RZ\nNOP\nEXIT", "R90", {"R10": 1})
        assert found.values is None


class TestLoopsAndBlocks:
    def test_a_block_that_does_not_touch_the_register_is_stepped_over(self) -> None:
        text = """IADD3 R2, R6, 0x4, RZ
            @P0 BRA <on>
            MOV R9, R7
            on: STG.E [R2.64], R5
            MOV R2, RZ
            NOP
            EXIT"""
        assert again(text, "R2", {"R6": 1}).values == {"R2": 5}

    def test_a_source_that_the_block_changes_is_lost(self) -> None:
        text = """IADD3 R2, R6, 0x4, RZ
            @P0 BRA <on>
            MOV R6, R7
            on: STG.E [R2.64], R5
            MOV R2, RZ
            NOP
            EXIT"""
        assert again(text, "R2", {"R6": 1}).values is None

    LOOP = """MOV R2, R6
        head: LDG.E R5, [R2.64]
        NOP
        MOV R2, R8
        {behind}
        @P0 BRA <head>
        EXIT"""

    def test_a_loop_that_redefines_the_register_gives_nothing(self) -> None:
        text = self.LOOP.format(behind="MOV R9, R5")
        assert again(text, "R2", {"R6": 1, "R8": 2}, fault="LDG", lane="MOV R9").values is None

    def test_a_source_changed_behind_the_fault_by_an_earlier_round_is_not_used(self) -> None:
        """R2 was made in front of the loop from R6; an earlier round may have changed R6 since."""
        text = """MOV R2, R6
            head: LDG.E R5, [R2.64]
            NOP
            IADD3 R6, R6, 0x4, RZ
            @P0 BRA <head>
            MOV R2, RZ
            EXIT"""
        lines = listing(text)
        found = recompute(lines, BASE + 16, BASE + 32, ["R2"], {"R6": 1, "R2": None})
        assert found.values is None


class TestRecordedFaults:
    def test_a_shared_base_that_the_next_instruction_overwrote(self) -> None:
        fault = FAULTS["misaligned_shared"]
        values = {"R9": 0x18, "UR4": 0, "UR5": 0, "SR_CgaCtaId": 0}
        found = recompute(fault.lines, fault.errorpc, fault.lane_pcs[0], ["R9", "UR4"], values)
        assert found.values == {"R9": 0x18, "UR4": 0x400}
        assert [step.text.split()[0] for step in found.steps] == ["S2UR", "UMOV", "ULEA"]

    def test_a_load_over_its_own_address(self) -> None:
        fault = FAULTS["oob_load_debug"]
        values = {"R2": 0, "R3": 0x7F5F, "R8": 0xB9E00000, "R16": 5}
        found = recompute(fault.lines, fault.errorpc, fault.lane_pcs[0], ["R2", "R3"], values)
        assert found.values == {"R2": 0xB9E00014, "R3": 0x7F5F}

    def test_an_address_whose_origin_is_gone_too(self) -> None:
        fault = FAULTS["deep"]
        values = {f"R{i}": 0 for i in range(20)} | {f"UR{i}": 0 for i in range(20)}
        assert recompute(fault.lines, fault.errorpc, fault.lane_pcs[0], ["R2"], values).values is None
