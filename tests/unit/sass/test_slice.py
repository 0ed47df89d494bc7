"""The instructions that computed an address, nearest first, and where looking ended."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.sass.line import SassLine
from crashlab.sass.operands import parse
from crashlab.sass.slice import SliceStep, backward_slice

from .listing import BASE, listing, pc_of
from .recorded import faults
from .test_liveness import programs

FAULTS = faults()


def origin(text: str, registers: str = "R2 R3", limit: int = 12) -> tuple[SliceStep, ...]:
    lines = listing(text)
    return backward_slice(lines, pc_of(lines, "STG"), registers.split(), limit)


def opcodes(steps: tuple[SliceStep, ...]) -> list[str]:
    return [parse(step.text).opcode for step in steps if step.defines]


def test_a_chain_is_followed_to_where_it_begins() -> None:
    steps = origin(
        """S2R R5, SR_TID.X
        FADD R9, R9, R9
        LDC.64 R2, c[0x0][0x210]
        IMAD.WIDE.U32 R2, R5, 0x4, R2
        MOV R4, R9
        STG.E [R2.64], R4"""
    )
    assert opcodes(steps) == ["IMAD", "LDC", "S2R"]
    assert steps[0] == SliceStep(BASE + 48, "IMAD.WIDE.U32 R2, R5, 0x4, R2", ("R2", "R3"), ("R5", "R2", "R3"))
    assert all(step.stop is None for step in steps)


def test_the_function_entry_is_said() -> None:
    steps = origin("IADD3 R2, R4, 0x1, RZ\nSTG.E [R2.64], R4")
    assert steps[-1].stop == "function entry"
    assert set(steps[-1].reads) == {"R4", "R3"}


def test_a_merge_point_that_matters_stops() -> None:
    steps = origin("MOV R2, R4\n@P0 BRA <on>\nMOV R2, R5\non: STG.E [R2.64], R4", "R2")
    assert [step.stop for step in steps] == ["merge point: more than one way leads here"]


def test_a_block_that_touches_nothing_needed_is_stepped_over() -> None:
    steps = origin("MOV R2, R4\n@P0 BRA <on>\nMOV R9, R5\non: STG.E [R2.64], R4", "R2")
    assert steps[0].defines == ("R2",)


def test_a_loop_around_the_access_is_stepped_over_when_it_leaves_the_registers_alone() -> None:
    steps = origin("MOV R2, R4\nhead: STG.E [R2.64], R4\n@P0 BRA <head>\nEXIT", "R2")
    assert steps[0].text == "MOV R2, R4"
    steps = origin("MOV R2, R4\nhead: STG.E [R2.64], R4\nIADD3 R2, R2, 0x4, RZ\n@P0 BRA <head>\nEXIT", "R2")
    assert steps[0].stop == "merge point: more than one way leads here"


def test_a_call_and_an_unknown_instruction_stop() -> None:
    assert "call" in (origin("MOV R2, R4\nCALL.ABS.NOINC R8\nSTG.E [R2.64], R4")[-1].stop or "")
    assert origin("MOV R2, R4\nFROB R8\nSTG.E [R2.64], R4")[-1].stop == "unknown instruction"
    assert origin("MOV R2, R4\n???\nSTG.E [R2.64], R4")[-1].stop == "unknown instruction"


def test_a_guarded_definition_leaves_the_older_one_in_question() -> None:
    steps = origin("MOV R2, R4\n@P0 MOV R2, R5\nSTG.E [R2.64], R4", "R2")
    assert [step.text for step in steps[:2]] == ["@P0 MOV R2, R5", "MOV R2, R4"]
    assert "P0" in steps[0].reads


def test_a_load_ends_its_branch_of_the_chain() -> None:
    steps = origin("MOV R6, R8\nLDG.E R2, [R6.64]\nSTG.E [R2.64], R4", "R2")
    assert [step.text for step in steps] == ["LDG.E R2, [R6.64]"]
    assert steps[0].reads == ()


def test_the_limit_is_kept_and_said() -> None:
    text = "\n".join(f"IADD3 R2, R2, 0x{i:x}, RZ" for i in range(1, 30)) + "\nSTG.E [R2.64], R4"
    steps = origin(text, "R2", limit=5)
    assert len(steps) == 6
    assert steps[-1].stop == "more than 5 instructions"


def test_a_pc_outside_gives_nothing() -> None:
    assert backward_slice(listing("EXIT"), 0x77770, ["R2"]) == ()
    assert backward_slice((), 0, ["R2"]) == ()


def test_the_descriptor_of_a_recorded_tensor_copy_comes_from_the_kernels_arguments() -> None:
    fault = FAULTS["tma"]
    descriptor = next(a for a in parse(fault.text).addresses if a.role == "descriptor")
    steps = backward_slice(fault.lines, fault.errorpc, descriptor.address_registers())
    assert [step.text.split()[0] for step in steps] == ["UIADD3.X", "UIADD3", "ULDC.64"]


def test_a_recorded_shared_address_comes_from_thread_and_argument() -> None:
    fault = FAULTS["shared_oob"]
    steps = backward_slice(fault.lines, fault.errorpc, ["R0"])
    texts = [step.text for step in steps]
    assert "S2R R11, SR_TID.X" in texts
    assert "ULDC UR9, c[0x0][0x220]" in texts
    assert all(step.stop is None for step in steps)


@settings(max_examples=300, deadline=None)
@given(programs(), st.integers(0, 13))
def test_every_program_has_a_slice_that_ends(lines: tuple[SassLine, ...], at: int) -> None:
    at %= len(lines)
    steps = backward_slice(lines, lines[at].pc, ["R2", "R3"])
    assert len(steps) <= 13
    assert all(step.stop is None for step in steps[:-1])
    for step in steps:
        assert step.stop or step.defines
