"""A view's result: named columns and rows of plain values, as text or as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from crashlab import facts
from crashlab.report.jsonio import to_json
from crashlab.report.safe import one_line

_GAP = "  "
_NARROWEST = 16
"""Columns of words are not made narrower than this."""

Value = object
"""None (absent), str, int, :class:`~crashlab.facts.Hex`, :class:`~crashlab.facts.Dim3`, or a tuple of them."""


class Table(NamedTuple):
    """Columns and rows. ``note`` says what was left out or is absent, when something is."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    note: str | None = None

    def as_json(self) -> object:
        """``{"rows": [{column: value}], "note": …}``; absent values are null, never 0."""
        rows = [dict(zip(self.columns, (to_json(v) for v in row), strict=True)) for row in self.rows]
        return {"rows": rows, "note": self.note}

    def as_text(self, width: int | None = None) -> Iterator[str]:
        """Aligned lines, numbers to the right, a dash for what is absent.

        In at most ``width`` columns as far as that goes: the widest cells of words are continued on further
        lines. Numbers, addresses and what is short are never broken.
        """
        cells = [[_cell(value) for value in row] for row in self.rows]
        widths = [max([len(name), *(len(row[i]) for row in cells)]) for i, name in enumerate(self.columns)]
        right = [
            bool(self.rows) and all(_numeric(row[i]) for row in self.rows) for i in range(len(self.columns))
        ]
        if width is not None:
            words = [any(isinstance(row[i], str) for row in self.rows) for i in range(len(widths))]
            widths = _narrowed(widths, words, width)
        for row in [list(self.columns), *cells]:
            yield from _lines(row, widths, right)
        if self.note:
            yield f"({one_line(self.note)})"


def _narrowed(widths: list[int], words: list[bool], width: int) -> list[int]:
    """The widths with the widest columns of words made narrower, until a line fits or nothing more can give."""
    widths = list(widths)
    over = sum(widths) + len(_GAP) * (len(widths) - 1) - width
    while over > 0:
        at = max((i for i, is_words in enumerate(words) if is_words), key=lambda i: widths[i], default=None)
        if at is None or widths[at] <= _NARROWEST:
            break
        second = max((w for i, w in enumerate(widths) if words[i] and i != at and w < widths[at]), default=0)
        step = min(over, widths[at] - max(_NARROWEST, second))
        widths[at] -= max(1, step)
        over -= max(1, step)
    return widths


def _lines(row: list[str], widths: list[int], right: list[bool]) -> Iterator[str]:
    """One row; a cell that is longer than its column goes on below."""
    pieces = [
        [text[at : at + room] for at in range(0, len(text), room)] or [""]
        for text, room in zip(row, widths, strict=True)
    ]
    for line in range(max(map(len, pieces))):
        shown = [piece[line] if line < len(piece) else "" for piece in pieces]
        parts = [
            text.rjust(room) if to_right else text.ljust(room)
            for text, room, to_right in zip(shown, widths, right, strict=True)
        ]
        yield _GAP.join(parts).rstrip()


def _numeric(value: Value) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool))


def _cell(value: Value) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (facts.Hex, facts.Dim3)):
        return str(value)
    if isinstance(value, tuple):
        return ",".join(_cell(item) for item in value)
    return one_line(str(value), 400)
