"""Reads the rows below the headings of cuda-gdb's tables."""

from __future__ import annotations

from typing import Any

from crashlab.debugger.rows import DeviceRow, KernelRow, LaneRow, WarpRow
from crashlab.debugger.tables import (
    Scope,
    parse_device,
    parse_kernel,
    parse_lane,
    parse_scope,
    parse_warp,
    table_of,
)

MAX_ROWS = 8192
MAX_ROW = 65536
_NOWHERE: Scope = (None, None, None)


class TableReader:
    """Takes the lines of tables; of a table that is printed twice only the first one counts."""

    def __init__(self) -> None:
        self.kernels: list[KernelRow] = []
        self.devices: list[DeviceRow] = []
        self.warps: list[WarpRow] = []
        self.lanes: list[LaneRow] = []
        self._table: str | None = None
        self._scope = _NOWHERE
        self._seen: set[str] = set()
        self._pending = ""

    def take(self, kind: str, line: str) -> bool:
        """True when the line is a heading or belongs to the table that is open."""
        if kind == "blank":
            self.leave()
            return False
        heading = table_of(line)
        if heading is not None:
            self.leave()
            self._table = "other" if heading in self._seen else heading
            self._seen.add(heading)
            return True
        if self._table is None:
            return False
        scope = parse_scope(line)
        if scope is not None:
            self._scope = scope
            return True
        return self._row(line)

    def leave(self) -> None:
        """Any other line ends the table."""
        self._table, self._scope, self._pending = None, _NOWHERE, ""

    def _row(self, line: str) -> bool:
        if self._table == "other":
            return True
        if self._table == "kernels":
            return self._kernel(line)
        if self._table == "devices":
            device = parse_device(line)
            return _add(self.devices, device)
        if self._table == "warps":
            return _add(self.warps, parse_warp(line, self._scope))
        return _add(self.lanes, parse_lane(line, self._scope))

    def _kernel(self, line: str) -> bool:
        """Kernel rows are the longest and the ones that a terminal wraps: the rest comes in the next line."""
        row = parse_kernel(self._pending + line)
        if row is not None:
            self._pending = ""
            return _add(self.kernels, row)
        if parse_kernel(line) is None and self.kernels and not self._pending and not line[:1].isspace():
            last = self.kernels[-1]
            if len(last.invocation) < MAX_ROW:
                self.kernels[-1] = last._replace(invocation=last.invocation + line.strip())
            return True
        self._pending = (self._pending + line) if len(self._pending) < MAX_ROW else ""
        return True

    def facts(self) -> dict[str, Any]:
        """Rows by the field names of ``Transcript``."""
        return {
            "kernels": tuple(self.kernels),
            "devices": tuple(self.devices),
            "warps": tuple(self.warps),
            "lanes": tuple(self.lanes),
        }


def _add(rows: list[Any], row: object) -> bool:
    if row is not None and len(rows) < MAX_ROWS:
        rows.append(row)
    return row is not None
