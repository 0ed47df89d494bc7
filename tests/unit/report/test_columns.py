"""Cells under each other on screens of any width."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crashlab.report.columns import Columns, broken
from crashlab.report.text import Paragraph, page

HEADS = ("arm", "faults", "what it does")
ROWS = (("baseline", "3", "a sentence that is longer than a narrow column may be"), ("b", "12", "short"))
TABLE = Columns(HEADS, ROWS, (False, True, False), (True, False, True))


def test_without_a_width_a_table_is_as_wide_as_its_cells() -> None:
    assert list(TABLE.lines()) == [
        "arm       faults  what it does",
        "baseline       3  a sentence that is longer than a narrow column may be",
        "b             12  short",
    ]


def test_words_go_on_below_and_are_broken_at_blanks() -> None:
    assert list(TABLE.lines(50)) == [
        "arm       faults  what it does",
        "baseline       3  a sentence that is longer than a",
        "                  narrow column may be",
        "b             12  short",
    ]


def test_on_a_narrow_screen_each_row_is_a_list() -> None:
    assert list(TABLE._replace(indent="  ").lines(32)) == [
        "  arm           baseline",
        "  faults        3",
        "  what it does  a sentence that",
        "                is longer than a",
        "                narrow column",
        "                may be",
        "",
        "  arm           b",
        "  faults        12",
        "  what it does  short",
    ]


def test_a_wide_screen_keeps_a_table_that_is_still_too_wide() -> None:
    numbers = Columns(["n" * 30] * 4, [["1"] * 4], [True] * 4, [False] * 4)
    assert len(list(numbers.lines(79))) == 4
    assert [len(line) for line in numbers.lines(80)] == [126, 126]


def test_code_is_broken_on_a_narrow_screen_only() -> None:
    code = "  => 0x10  LDG.E R0, [R2.64] ; lane 0: R2=0x7f0000001000"
    assert page([code], 60) == f"{code}\n"
    assert page([code], 40) == "  => 0x10  LDG.E R0, [R2.64] ; lane 0:\n      R2=0x7f0000001000\n"
    assert page([code, TABLE, Paragraph("x")], 200).splitlines()[:2] == [code, next(iter(TABLE.lines()))]


@given(st.text("ab c", max_size=80), st.integers(1, 30))
def test_broken_text_loses_nothing_but_blanks(text: str, room: int) -> None:
    pieces = broken(text, room)
    assert pieces
    assert all(len(piece) <= room for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


CELLS = st.lists(st.text("abc d", max_size=40), min_size=3, max_size=3)


@given(st.lists(CELLS, max_size=4), st.integers(1, 130), st.lists(st.booleans(), min_size=3, max_size=3))
def test_every_letter_is_shown_at_any_width(rows: list[list[str]], width: int, words: list[bool]) -> None:
    lines = list(Columns(("x", "y", "z"), rows, (False, True, False), words).lines(width))
    shown = "".join("".join(lines).split())
    for letter in "abcd":
        assert shown.count(letter) == sum(cell.count(letter) for row in rows for cell in row)
    if all(words) and width >= 52:
        assert all(len(line) <= width for line in lines)
