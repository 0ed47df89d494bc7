"""Cells under each other on screens of any width."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crashlab.report.columns import Columns, broken
from crashlab.report.text import Noted, Paragraph, page

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


def test_a_note_stands_below_its_instruction_where_both_are_wider_than_the_page() -> None:
    line = Noted("  => 0x10  LDG.E R0, [R2.64]", "; lane 0: R2=0x7f00 -> 0x7f0000001000")
    assert page([line], 80) == f"{line.text}   {line.note}\n"
    assert page([line], 60) == f"{line.text}\n          {line.note}\n"
    assert all(len(shown) <= 40 for shown in page([line], 40).splitlines())


def test_names_of_arms_are_broken_behind_a_sign() -> None:
    assert broken("cudagraph-mode=NONE", 16) == ["cudagraph-mode=", "NONE"]
    assert broken("linear-backend=marlin", 20) == ["linear-backend=", "marlin"]
    assert broken("a=1,b=2,c=3", 8) == ["a=1,b=2,", "c=3"]
    assert broken("dump-flags=skip_nonrelocated_elf", 16) == ["dump-flags=", "skip_", "nonrelocated_elf"]
    assert broken("x" * 10, 4) == ["xxxx", "xxxx", "xx"]


def test_a_sentence_is_broken_in_a_word_only_where_the_word_alone_is_too_long() -> None:
    setting = "CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1,"
    assert page([Paragraph(f"only with {setting} to")], 40) == f"only with\n{setting} to\n"
    assert (
        page([Paragraph("v1|fault|kernel_name|store|global")], 20)
        == "v1|fault|\nkernel_name|store|\nglobal\n"
    )


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
