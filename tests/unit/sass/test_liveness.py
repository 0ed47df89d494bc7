"""Whether registers still hold what the faulting instruction saw."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.sass.line import SassLine
from crashlab.sass.liveness import LivenessResult, redefinition
from crashlab.sass.operands import parse

from .listing import BASE, listing, pc_of
from .recorded import faults

FAULTS = faults()


def judge(
    text: str,
    registers: str,
    values: dict[str, int | None] | None = None,
    *,
    fault: str = "STG",
    lane: str = "NOP",
) -> LivenessResult:
    lines = listing(text)
    return redefinition(lines, pc_of(lines, fault), pc_of(lines, lane), registers.split(), values)


class TestStraightCode:
    def test_registers_that_nobody_writes_are_intact(self) -> None:
        found = judge("STG.E [R2.64], R5\nIADD3 R4, R4, 0x1, RZ\nNOP\nEXIT", "R2 R3")
        assert found == LivenessResult(True, "intact", straight=True)

    def test_the_instruction_at_the_lanes_pc_has_not_been_executed(self) -> None:
        assert judge("STG.E [R2.64], R5\nMOV R2, R4\nEXIT", "R2 R3", lane="MOV").intact

    def test_nothing_is_executed_when_the_lane_stands_at_the_fault(self) -> None:
        assert judge("STG.E [R2.64], R5\nMOV R2, R4\nEXIT", "R2 R3", lane="STG").intact

    def test_a_redefinition_is_named(self) -> None:
        found = judge("STG.E [R2.64], R5\nLDC.64 R2, c[0x0][0x210]\nMOV R3, RZ\nNOP\nEXIT", "R2 R3")
        assert (found.intact, found.state, found.straight) == (False, "destroyed", False)
        assert found.pc == BASE + 16
        assert found.registers == ("R2", "R3")
        assert found.reason == "R2, R3 was redefined at 0x1010 (LDC.64 R2, c[0x0][0x210])"

    @pytest.mark.parametrize(
        ("killer", "registers"),
        [
            ("LDG.E.128 R0, desc[UR4][R8.64]", "R3"),  # the last of a vector
            ("IMAD.WIDE R2, R8, 0x4, R10", "R3"),  # the upper half of a pair
            ("HMMA.16816.F32 R0, R8, R12, RZ", "R3"),
            ("ULDC.64 UR4, c[0x0][0x208]", "UR5"),
            ("ISETP.GE.AND P0, P1, R8, R9, PT", "P1"),
            ("R2P PR, R8, 0x2", "P1"),
            ("LDTM.x4 R0, tmem[UR8]", "R3"),
        ],
    )
    def test_every_register_of_a_wide_destination_counts(self, killer: str, registers: str) -> None:
        found = judge(f"STG.E [R20.64], R5\n{killer}\nNOP\nEXIT", registers)
        assert found.state == "destroyed"
        assert found.registers == (registers,)

    def test_a_loads_own_destination_counts_as_destroyed(self) -> None:
        found = judge("LDG.E R2, [R2.64]\nNOP\nEXIT", "R2 R3", fault="LDG")
        assert found.state == "destroyed"
        assert found.registers == ("R2",)
        assert "by the faulting instruction itself" in (found.reason or "")

    def test_an_opcode_that_is_not_known_may_have_written_anything(self) -> None:
        found = judge("STG.E [R2.64], R5\nFROB R9, R10\nNOP\nEXIT", "R2 R3")
        assert found.state == "unknown"
        assert "FROB" in (found.reason or "")

    def test_text_that_is_no_instruction_is_unknown_too(self) -> None:
        assert judge("STG.E [R2.64], R5\n???\nNOP\nEXIT", "R2").state == "unknown"


class TestPredicates:
    TEXT = "STG.E [R2.64], R5\n@P0 MOV R2, R4\nNOP\nEXIT"

    def test_a_predicated_redefinition_destroys_unless_it_is_known_to_be_off(self) -> None:
        assert judge(self.TEXT, "R2").state == "destroyed"
        assert judge(self.TEXT, "R2", {"P0": 1}).state == "destroyed"
        assert judge(self.TEXT, "R2", {"P0": None}).state == "destroyed"
        assert judge(self.TEXT, "R2", {"P0": 0}).intact

    def test_a_negated_guard(self) -> None:
        text = self.TEXT.replace("@P0", "@!P0")
        assert judge(text, "R2", {"P0": 1}).intact
        assert not judge(text, "R2", {"P0": 0}).intact

    def test_a_predicate_that_changed_afterwards_tells_nothing(self) -> None:
        text = "STG.E [R2.64], R5\n@P0 MOV R2, R4\nISETP.NE.AND P0, PT, R9, RZ, PT\nNOP\nEXIT"
        assert judge(text, "R2", {"P0": 0}).state == "destroyed"

    def test_never_executed_instructions_do_not_count(self) -> None:
        assert judge("STG.E [R2.64], R5\n@!PT LDS RZ, [RZ]\n@!PT MOV R2, R4\nNOP\nEXIT", "R2").intact


class TestControlFlow:
    def test_a_forward_branch_within_the_way_does_no_harm(self) -> None:
        text = "STG.E [R2.64], R5\n@P0 BRA <on>\nMOV R9, R8\non: IADD3 R7, R7, R8, RZ\nNOP\nEXIT"
        assert judge(text, "R2 R3").intact

    def test_a_redefinition_on_one_of_two_ways_destroys(self) -> None:
        text = "STG.E [R2.64], R5\n@P0 BRA <on>\nMOV R2, R8\non: IADD3 R7, R7, R8, RZ\nNOP\nEXIT"
        assert judge(text, "R2 R3").state == "destroyed"

    def test_a_branch_to_the_next_instruction_excludes_no_way(self) -> None:
        text = "IADD3 R1, R1, 0x0, RZ\n@!P0 BRA 0x1020\nNOP\nSTG.E [R2.64], R5\n@P0 BRA 0x1000\nEXIT"
        assert judge(text, "R2 R3", {"P0": 0}).state == "bypass"

    def test_a_lane_that_may_have_jumped_past_the_fault_is_a_bypass(self) -> None:
        text = "S2R R0, SR_TID.X\n@P0 BRA <on>\nSTG.E [R2.64], R5\non: IADD3 R7, R7, R8, RZ\nNOP\nEXIT"
        found = judge(text, "R2 R3")
        assert (found.intact, found.state, found.straight) == (False, "bypass", True)
        assert "0x1010 (@P0 BRA 0x1030)" in (found.reason or "")

    def test_a_branch_whose_predicate_still_stands_decides(self) -> None:
        text = "S2R R0, SR_TID.X\n@P0 BRA <on>\nSTG.E [R2.64], R5\non: IADD3 R7, R7, R8, RZ\nNOP\nEXIT"
        assert judge(text, "R2 R3", {"P0": 0}).intact
        assert judge(text, "R2 R3", {"P0": 1}).state == "bypass"
        changed = text.replace("IADD3 R7, R7, R8, RZ", "ISETP.NE.AND P0, PT, R7, RZ, PT")
        assert judge(changed, "R2 R3", {"P0": 0}).state == "bypass"

    def test_uniform_registers_do_not_care_which_lanes_came_along(self) -> None:
        text = "S2R R0, SR_TID.X\n@P0 BRA <on>\nUTMASTG.1D [UR8], [UR4]\non: IADD3 R7, R7, R8, RZ\nNOP\nEXIT"
        assert judge(text, "UR4 UR5", fault="UTMASTG").intact

    LOOP = """head: IADD3 R2, R2, 0x4, RZ
        {access}
        ISETP.NE.AND P0, PT, R9, RZ, PT
        NOP
        @P0 BRA <head>
        EXIT"""

    def test_a_store_in_a_loop_may_have_come_round_again(self) -> None:
        found = judge(self.LOOP.format(access="STG.E [R2.64], R5"), "R2 R3")
        assert (found.intact, found.state, found.straight) == (False, "loop", True)
        assert "went round the loop once more" in (found.reason or "")
        assert found.pc == BASE

    def test_registers_that_the_loop_leaves_alone_are_intact(self) -> None:
        assert judge(self.LOOP.format(access="STG.E [R12.64], R5"), "R12 R13").intact

    def test_a_load_waits_for_its_result_and_cannot_come_round(self) -> None:
        assert judge(self.LOOP.format(access="LDG.E R7, [R2.64]"), "R2 R3", fault="LDG").intact

    def test_a_lane_before_the_fault_may_not_have_come_to_it_yet(self) -> None:
        lines = listing(self.LOOP.format(access="LDG.E R7, [R2.64]"))
        assert redefinition(lines, BASE + 16, BASE, ["R2", "R3"]).state == "bypass"
        found = redefinition(lines, BASE + 16, BASE, ["P0"])
        assert (found.state, found.straight) == ("destroyed", False)

    def test_a_lane_that_cannot_be_reached_is_said_to_be_so(self) -> None:
        text = "NOP\nBRA <other>\nSTG.E [R2.64], R5\nEXIT\nother: MOV R1, R2\nEXIT"
        assert judge(text, "R2", lane="MOV R1").state == "unreachable"

    def test_pcs_outside_of_the_code_are_unknown(self) -> None:
        lines = listing("STG.E [R2.64], R5\nEXIT")
        assert redefinition(lines, BASE, 0x99990, ["R2"]).state == "unknown"
        assert redefinition(lines, 0x99990, BASE, ["R2"]).state == "unknown"
        assert redefinition(lines, BASE, None, ["R2"]).reason == "the lane's PC is not known"
        assert redefinition((), BASE, BASE, ["R2"]).state == "unknown"

    def test_an_indirect_branch_may_lead_a_store_round_again(self) -> None:
        text = "STG.E [R2.64], R5\nNOP\nIADD3 R9, R9, 0x1, RZ\nBRX R8 -0x10\nEXIT"
        found = judge(text, "R2 R3")
        assert found.state == "unknown"
        assert "BRX" in (found.reason or "")
        assert judge(text.replace("STG.E [R2.64], R5", "LDG.E R5, [R2.64]"), "R2 R3", fault="LDG").intact

    CALLS = """CALL.REL.NOINC <callee>
        IADD3 R7, R7, 0x1, RZ
        NOP
        EXIT
        callee: {body}
        RET.REL.NODEC R20 0x0"""

    def test_a_call_is_followed_into_its_callee(self) -> None:
        lines = listing("STG.E [R2.64], R5\n" + self.CALLS.format(body="MOV R9, R8"))
        assert redefinition(lines, BASE, pc_of(lines, "NOP"), ["R2", "R3"]).intact
        lines = listing("STG.E [R2.64], R5\n" + self.CALLS.format(body="MOV R2, R8"))
        assert redefinition(lines, BASE, pc_of(lines, "NOP"), ["R2", "R3"]).state == "destroyed"

    def test_a_lane_in_the_callee_after_a_fault_in_the_caller(self) -> None:
        lines = listing("STG.E [R2.64], R5\n" + self.CALLS.format(body="MOV R2, R8"))
        assert redefinition(lines, BASE, pc_of(lines, "MOV R2"), ["R2", "R3"]).intact

    def test_a_call_to_somewhere_else_may_change_anything(self) -> None:
        found = judge("STG.E [R2.64], R5\nCALL.ABS.NOINC R8\nNOP\nEXIT", "R2")
        assert found.state == "unknown"

    def test_a_function_that_returns_to_callers_out_of_sight(self) -> None:
        text = "STG.E [R2.64], R5\nNOP\nRET.REL.NODEC R20 0x0"
        assert judge(text, "R2 R3").state == "unknown"
        assert judge(text.replace("STG.E [R2.64], R5", "LDG.E R5, [R2.64]"), "R2 R3", fault="LDG").intact

    def test_convergence_regions_lead_to_the_end_of_their_opening(self) -> None:
        text = """BSSY B0, <join>
            @P0 BRA <other>
            STG.E [R2.64], R5
            BSYNC B0
            other: MOV R2, R8
            BSYNC B0
            join: IADD3 R7, R7, 0x1, RZ
            NOP
            EXIT"""
        found = judge(text, "R2 R3", {"P0": 0})
        assert found.state != "unreachable"
        assert judge(text, "R2 R3").state in ("bypass", "destroyed")


class TestRecordedFaults:
    """What was seen on a GPU: state and straightness for each scene's address registers."""

    @pytest.mark.parametrize(
        ("scene", "state", "straight"),
        [
            ("oob_load", "intact", True),
            ("oob_load_nolineinfo", "intact", True),
            ("misaligned", "intact", True),
            ("multi", "intact", True),
            ("shared_oob", "intact", True),
            ("shared_oob_full", "intact", True),
            ("shared_oob_nolineinfo", "intact", True),
            ("shared_oob_debug", "intact", True),
            ("seed_sm120", "intact", True),
            ("torch_triton", "intact", True),
            ("vllm_oob", "intact", True),
            ("nccl_rank1_faults", "intact", True),
            ("misaligned_shared", "destroyed", False),  # ULDC.64 UR4 right behind the store
            ("oob_load_debug", "destroyed", False),  # LD.E R2, [R2.64]
            ("deep", "destroyed", False),
            ("stack", "loop", True),  # recursion moves the stack pointer
        ],
    )
    def test_address_registers(self, scene: str, state: str, straight: bool) -> None:
        fault = FAULTS[scene]
        address = parse(fault.text).addresses[0]
        for pc in fault.lane_pcs:
            found = redefinition(fault.lines, fault.errorpc, pc, address.address_registers(), {})
            assert (found.state, found.straight) == (state, straight), found.reason

    def test_the_descriptor_of_a_tensor_copy_survives(self) -> None:
        fault = FAULTS["tma"]
        descriptor = next(a for a in parse(fault.text).addresses if a.role == "descriptor")
        for pc in fault.lane_pcs:
            assert redefinition(fault.lines, fault.errorpc, pc, descriptor.address_registers()).intact

    def test_a_lane_in_another_kernel_is_unknown(self) -> None:
        fault = FAULTS["graph_full"]
        assert redefinition(fault.lines, fault.errorpc, fault.lane_pcs[0], ["R2"]).state == "unknown"


TEXTS = (
    "STG.E [R2.64], R5",
    "LDG.E R2, [R4.64]",
    "MOV R2, R4",
    "@P0 MOV R3, R4",
    "ISETP.NE.AND P0, PT, R9, RZ, PT",
    "@P0 BRA 0x{:x}",
    "@!P0 BRA 0x{:x}",
    "BRA 0x{:x}",
    "EXIT",
    "@P0 EXIT",
    "CALL.REL.NOINC 0x{:x}",
    "RET.REL.NODEC R20 0x0",
    "BSSY B0, 0x{:x}",
    "BSYNC B0",
    "BRX R2 -0x10",
    "WARPSYNC.COLLECTIVE R4, 0x{:x}",
    "rubbish",
    "FROB R1",
)


@st.composite
def programs(draw: st.DrawFn) -> tuple[SassLine, ...]:
    count = draw(st.integers(1, 14))
    texts = draw(st.lists(st.sampled_from(TEXTS), min_size=count, max_size=count))
    targets = draw(st.lists(st.integers(0, count), min_size=count, max_size=count))
    return tuple(
        SassLine(BASE + 16 * i, text.format(BASE + 16 * target))
        for i, (text, target) in enumerate(zip(texts, targets, strict=True))
    )


def walk(lines: tuple[SassLine, ...], start: int, choices: list[bool]) -> list[int]:
    """Indices executed from ``start`` on by a machine that takes branches as ``choices`` says."""
    trace, at, stack = [], start, []
    for choice in choices:
        trace.append(at)
        text = lines[at].text
        guarded = text.startswith("@")
        opcode = text.split()[1 if guarded else 0].split(".")[0]
        target = int(text.rsplit("0x", 1)[1], 16) if "0x" in text else 0
        index = (target - BASE) // 16
        after = at + 1
        if opcode == "BRA" and (choice or not guarded):
            after = index
        elif opcode == "CALL":
            stack.append(at + 1)
            after = index
        elif opcode == "RET":
            after = stack.pop() if stack else -1
        elif (opcode == "EXIT" and (choice or not guarded)) or opcode in (
            "BRX",
            "BSYNC",
            "WARPSYNC",
            "rubbish",
            "FROB",
        ):
            after = -1
        if not 0 <= after < len(lines):
            break
        at = after
    return trace


@settings(max_examples=400, deadline=None)
@given(programs(), st.integers(0, 13), st.lists(st.booleans(), min_size=30, max_size=30), st.integers(0, 29))
def test_intact_registers_are_never_written_on_a_way_that_can_be_walked(
    lines: tuple[SassLine, ...], start: int, choices: list[bool], stop: int
) -> None:
    start %= len(lines)
    trace = walk(lines, start, choices)
    end = trace[min(stop, len(trace) - 1)]
    executed = trace[: trace.index(end, 1) if end in trace[1:] else 1]
    found = redefinition(lines, lines[start].pc, lines[end].pc, ["R2", "R3"])
    if not found.intact:
        return
    for at in executed[1:]:
        assert not {"R2", "R3"} & set(parse(lines[at].text).defines or ()), [line.text for line in lines]
