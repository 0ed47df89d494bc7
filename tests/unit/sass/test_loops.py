"""Spin loops around a PC, what they poll, and loops that are work."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.sass.line import SassLine
from crashlab.sass.loops import SpinLoop, find_spin_loop

from .listing import BASE, listing, pc_of
from .test_liveness import programs


def around(text: str, at: str) -> SpinLoop | None:
    lines = listing(text)
    return find_spin_loop(lines, pc_of(lines, at))


FLAG = """MOV R9, R8
    head: LDG.E.STRONG.SYS R0, desc[UR4][R2.64]
    ISETP.NE.AND P0, PT, R0, RZ, PT
    @!P0 BRA <head>
    EXIT"""


@pytest.mark.parametrize("at", ["LDG", "ISETP", "@!P0 BRA"])
def test_a_flag_that_is_polled(at: str) -> None:
    found = around(FLAG, at)
    assert found == SpinLoop(
        BASE + 16,
        BASE + 48,
        "load",
        BASE + 16,
        "LDG.E.STRONG.SYS R0, desc[UR4][R2.64]",
        False,
        ("R2", "R3"),
        "polls memory with LDG.E.STRONG.SYS R0, desc[UR4][R2.64] (0x1010) in a loop 0x1010 to 0x1030",
    )


@pytest.mark.parametrize("at", ["MOV", "EXIT"])
def test_outside_of_the_loop_there_is_none(at: str) -> None:
    assert around(FLAG, at) is None


def test_an_mbarrier_that_is_waited_for() -> None:
    found = around("head: SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4+0x8], R0\n@!P0 BRA <head>\nEXIT", "@!P0")
    assert found is not None
    assert (found.kind, found.registers) == ("mbarrier", ("UR4",))


def test_a_lock_that_is_tried_with_sleeps() -> None:
    found = around(
        """head: ATOMG.E.CAS.STRONG.GPU PT, R5, [R2.64], R6, R7
        NANOSLEEP 0x20
        ISETP.NE.AND P0, PT, R5, RZ, PT
        @P0 BRA <head>
        EXIT""",
        "NANOSLEEP",
    )
    assert found is not None
    assert (found.kind, found.sleeps) == ("atomic", True)
    assert found.sentence.endswith("sleeping in between")


def test_the_strongest_evidence_is_the_polled_instruction() -> None:
    found = around(
        """head: LDS R9, [R8]
        LDG.E.STRONG.GPU R5, [R2.64]
        ISETP.NE.AND P0, PT, R5, R9, PT
        @P0 BRA <head>
        EXIT""",
        "ISETP",
    )
    assert found is not None
    assert (found.polled_text or "").startswith("LDG")


def test_an_abort_flag_stored_under_a_predicate_does_not_make_it_work() -> None:
    text = """head: LD.E.64.STRONG.SYS R4, [R2.64]
        @P2 STS [R48+0x24], R5
        ISETP.NE.AND P0, PT, R4, RZ, PT
        @P0 BRA <head>
        EXIT"""
    assert around(text, "ISETP") is not None
    assert around(text.replace("@P2 STS", "STS"), "ISETP") is None


@pytest.mark.parametrize(
    "work",
    [
        "STG.E [R2.64], R5",
        "RED.E.ADD.STRONG.GPU [R2.64], R5",
        "HMMA.16816.F32 R4, R8, R12, R4",
        "UTMALDG.2D [UR4], [UR8]",
        "CALL.REL.NOINC 0x0",
        "???",
    ],
)
def test_a_loop_that_works_is_no_spin_loop(work: str) -> None:
    assert around(FLAG.replace("ISETP", f"{work}\nISETP"), "@!P0 BRA") is None


def test_a_loop_over_an_array_is_work() -> None:
    """The loaded values do not decide whether it goes on."""
    text = """head: LDG.E R5, [R2.64]
        FADD R6, R6, R5
        IADD3 R8, R8, 0x1, RZ
        ISETP.LT.AND P0, PT, R8, R9, PT
        @P0 BRA <head>
        EXIT"""
    assert around(text, "FADD") is None


def test_an_ordinary_load_that_decides_is_polling() -> None:
    text = "head: LDG.E R5, [R2.64]\nISETP.NE.AND P0, PT, R5, RZ, PT\n@P0 BRA <head>\nEXIT"
    found = around(text, "ISETP")
    assert found is not None
    assert found.kind == "load"


def test_a_loop_that_watches_the_clock() -> None:
    text = """head: CS2R R4, SR_CLOCKLO
        ISETP.GE.U32.AND P0, PT, R4, UR6, PT
        @!P0 BRA <head>
        EXIT"""
    found = around(text, "ISETP")
    assert found is not None
    assert (found.kind, found.registers) == ("clock", ())


def test_a_branch_to_itself() -> None:
    found = around("EXIT\nself: BRA <self>", "BRA")
    assert found is not None
    assert (found.kind, found.polled_pc) == ("empty", None)


def test_a_loop_that_only_sleeps() -> None:
    found = around("head: NANOSLEEP 0x64\nBRA <head>", "NANOSLEEP")
    assert found is not None
    assert found.kind == "sleep"


def test_an_exit_in_the_loop_can_be_the_decision() -> None:
    text = "head: LDG.E R5, [R2.64]\nISETP.NE.AND P0, PT, R5, RZ, PT\n@P0 EXIT\nBRA <head>"
    assert around(text, "ISETP") is not None


def test_a_branch_back_that_the_loop_does_not_reach_is_none() -> None:
    text = "head: LDG.E.STRONG.SYS R5, [R2.64]\nMOV R1, R2\nEXIT\n@P0 BRA <head>\nEXIT"
    assert around(text, "MOV") is None


def test_the_smallest_loop_is_taken() -> None:
    text = """outer: MOV R1, R1
        inner: LDG.E.STRONG.SYS R5, [R2.64]
        ISETP.NE.AND P0, PT, R5, RZ, PT
        @P0 BRA <inner>
        @P1 BRA <outer>
        EXIT"""
    found = around(text, "ISETP")
    assert found is not None
    assert found.start == BASE + 16


def test_a_pc_outside_gives_none() -> None:
    assert find_spin_loop(listing("EXIT"), 0x9990) is None
    assert find_spin_loop((), 0) is None


@settings(max_examples=300, deadline=None)
@given(programs(), st.integers(0, 13))
def test_a_loop_found_holds_the_pc(lines: tuple[SassLine, ...], at: int) -> None:
    at %= len(lines)
    found = find_spin_loop(lines, lines[at].pc)
    if found is not None:
        assert found.start <= lines[at].pc <= found.end
