"""Which pointer argument an address is computed from, and what its digits look like."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab.postmortem.arguments import PointerArgument
from crashlab.postmortem.base import named_argument
from crashlab.postmortem.disassembly import Disassembly
from crashlab.postmortem.judge import describe_global
from crashlab.postmortem.looks import host_pointer, packed
from crashlab.postmortem.words import article, counted
from crashlab.sass.line import SassLine
from crashlab.sass.slice import backward_slice

FIRST = 0x210
A = PointerArgument(0, 0, 0x7F00_0000_0000)
B = PointerArgument(1, 8, 0x7F00_4000_0000)
INDEX = PointerArgument(2, 16, 1 << 35)
"""A long index reads like a pointer, too."""


def _named(*texts: str, arguments: tuple[PointerArgument, ...] = (A, B, INDEX)) -> PointerArgument | None:
    lines = [SassLine(0x1000 + 16 * i, text) for i, text in enumerate((*texts, "LDG.E R9, desc[UR4][R2.64]"))]
    steps = backward_slice(lines, lines[-1].pc, ("R2", "R3"))
    return named_argument(steps, ("R2", "R3"), arguments, FIRST)


@pytest.mark.parametrize(
    ("code", "base"),
    [
        (["LDC.64 R2, c[0x0][0x218]", "IMAD.WIDE.U32 R2, R7, 0x4, R2"], B),
        (["IMAD.WIDE R2, R7, 0x4, c[0x0][0x210]"], A),
        (["ULDC.64 UR4, c[0x0][0x210]", "LDC.64 R0, c[0x0][0x220]", "LEA R2, P0, R0, UR4, 0x2",
          "LEA.HI.X R3, R0, UR5, R1, 0x2, P0"], A),
        (["MOV R2, c[0x0][0x218]", "MOV R3, c[0x0][0x21c]"], B),
        (["ULDC.64 UR4, c[0x0][0x218]", "IADD3 R2, P0, R6, UR4, RZ", "IADD3.X R3, R7, UR5, RZ, P0, !PT"], B),
        (["LDC.64 R4, c[0x0][0x210]", "IMAD.IADD R2, R4, 0x1, R7", "MOV R3, R5"], A),
        # 128 bits hold two arguments, of which the address takes the second
        (["LDC.128 R4, c[0x0][0x210]", "IMAD.WIDE.U32 R2, R9, 0x4, R6"], B),
        # neither of two pointers that are added or chosen from
        (["LDC.64 R2, c[0x0][0x210]", "LDC.64 R4, c[0x0][0x218]", "IADD3 R2, P0, R2, R4, RZ"], None),
        # loaded from memory: whose pointer it is cannot be told
        (["LDC.64 R4, c[0x0][0x210]", "LDG.E.64 R2, desc[UR4][R4.64]"], None),
        (["IMAD.WIDE R2, R7, 0x4, c[0x0][0x160]"], None),
        (["IMAD.WIDE R2, R7, 0x4, c[0x3][0x210]"], None),
        (["LDC.64 R2, c[0x0][R8+0x210]"], None),
    ],
)  # fmt: skip
def test_the_base_is_what_is_added_unscaled(code: list[str], base: PointerArgument | None) -> None:
    assert _named(*code) == base


def test_without_a_bank_offset_or_arguments_there_is_no_base() -> None:
    assert named_argument((), ("R2",), (A,), None) is None
    assert _named("IMAD.WIDE R2, R7, 0x4, c[0x0][0x210]", arguments=()) is None


def test_the_distance_is_measured_from_the_base_and_the_nearest_is_named_second() -> None:
    address = B.value + 4096
    assert describe_global(address, (A, B))[0] == "at-argument"
    kind, text = describe_global(address, (A, B), A)
    assert kind == "past-argument"
    assert text.startswith(
        "1,073,745,920 bytes past argument 0 (0x7f0000000000), which the code computes it from"
    )
    assert text.endswith("the nearest pointer is another: 4,096 bytes past argument 1 (0x7f0040000000)")


def test_far_from_its_base_and_near_to_another_pointer_is_a_kind_of_its_own() -> None:
    far = PointerArgument(3, 24, 0x7000_0000_0000)
    assert describe_global(B.value + 64, (far, B), far)[0] == "far-from-base"
    assert describe_global(B.value + 64, (far,), far)[0] == "far-from-arguments"


@pytest.mark.parametrize(
    ("address", "base", "says"),
    [
        (0x55E1_B31A_8130, None, "0x55…"),
        (0x5612_0000_0000, None, "0x55…"),
        (0x7FFC_1234_5678, None, "stack"),
        (0x7F95_797B_D058, 0x7F95_797B_D010, "malloc"),
        (0x7F95_7980_0000, 0x7F95_7980_0000, None),
        (0x7F95_797B_D010, None, None),
    ],
)
def test_host_pointers_are_known_by_their_digits(address: int, base: int | None, says: str | None) -> None:
    found = host_pointer(address, base)
    assert (found is None) if says is None else (found is not None and says in found)


@pytest.mark.parametrize(
    ("address", "says"),
    [
        (0x0000_0400_0000_0200, "integers 512 and 1,024"),
        (0x3F80_0000_3F80_0000, "floats 1 and 1"),
        (0x7F23_0000_0200, None),
        (0x55E1_B31A_8130, None),
        (0x200, None),
    ],
)
def test_packed_values_are_known_by_their_halves(address: int, says: str | None) -> None:
    found = packed(address)
    assert (found is None) if says is None else (found is not None and says in found)


@given(st.integers(0, (1 << 64) - 1), st.one_of(st.none(), st.integers(0, (1 << 64) - 1)))
def test_any_number_can_be_looked_at(address: int, base: int | None) -> None:
    host_pointer(address, base)
    packed(address)


@pytest.mark.parametrize(
    ("number", "word"),
    [(1, "a"), (8, "an"), (11, "an"), (16, "a"), (18, "an"), (80, "an"), (88_000, "an"), (110, "a"),
     (128, "a"), (811, "an"), (1_100, "a"), (11_000, "an"), (18_000_000, "an"), (118, "a")],
)  # fmt: skip
def test_the_article_follows_how_a_number_is_spoken(number: int, word: str) -> None:
    assert article(number) == word


def test_words_have_articles_and_counts_have_plurals() -> None:
    assert [article(word) for word in ("atomic", "load", "Unreadable", "")] == ["an", "a", "an", "a"]
    assert [counted(n, "warp") for n in (0, 1, 2, 1024)] == ["0 warps", "1 warp", "2 warps", "1,024 warps"]
    assert counted(2, "entry", "entries") == "2 entries"


@pytest.mark.parametrize(
    ("options", "missing", "step"),
    [
        ({"external": False}, None, "without --fast, nvdisasm is asked"),
        ({"sass_by": "native"}, None, "with --sass-by auto, nvdisasm is asked"),
        ({}, "nvdisasm was not found (pip install x)", "but nvdisasm was not found (pip install x)"),
    ],
)
def test_an_unknown_instruction_names_the_step_that_is_left(
    options: dict[str, Any], missing: str | None, step: str
) -> None:
    reader = Disassembly(**options)
    reader.missing = missing
    assert reader.next_step().endswith(step)
