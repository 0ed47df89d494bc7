"""A view's result: named columns and rows of plain values, as text or as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from crashlab import facts
from crashlab.report.columns import Columns
from crashlab.report.jsonio import to_json
from crashlab.report.safe import one_line

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

        In at most ``width`` columns: the widest cells of words are continued on further lines, but numbers,
        addresses and what is short are never broken. On a narrow screen each row is a list of its cells then.
        """
        right = [
            bool(self.rows) and all(_numeric(row[i]) for row in self.rows) for i in range(len(self.columns))
        ]
        words = [any(isinstance(row[i], str) for row in self.rows) for i in range(len(self.columns))]
        cells = [[_cell(value) for value in row] for row in self.rows]
        yield from Columns(self.columns, cells, right, words).lines(width)
        if self.note:
            yield f"({one_line(self.note)})"


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
