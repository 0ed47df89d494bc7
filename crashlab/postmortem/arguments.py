"""Pointers among the arguments of a launch: what a bad global address can be measured against."""

from __future__ import annotations

from typing import NamedTuple

from crashlab.errors import MalformedCubin
from crashlab.gpucore.dump import CoreDump
from crashlab.gpucore.rows import GridRow
from crashlab.postmortem.codemap import CodeMap

_LOWEST, _HIGHEST = 1 << 33, 1 << 47
"""User-space addresses of Linux processes lie below 2^47; device memory is mapped high among them."""
_SCAN_LIMIT = 4096


class PointerArgument(NamedTuple):
    """An argument (or an 8-byte part of one) that reads like a device pointer.

    ``ordinal`` is its position from 0, None when the module gives no layout; ``offset`` its byte in
    the argument block.
    """

    ordinal: int | None
    offset: int
    value: int
    nested: bool = False

    @property
    def label(self) -> str:
        if self.ordinal is None:
            return f"the pointer at byte {self.offset} of the arguments"
        return f"a pointer inside argument {self.ordinal}" if self.nested else f"argument {self.ordinal}"


def pointer_arguments(dump: CoreDump, codemap: CodeMap, grid: GridRow | None) -> tuple[PointerArgument, ...]:
    """All plausible device pointers in a grid's arguments, in order; empty when they were not dumped."""
    data = dump.parameters(grid) if grid is not None else None
    if grid is None or data is None:
        return ()
    raw = bytes(data[:_SCAN_LIMIT])
    found = []
    covered = [(p.offset, p.size, p.ordinal) for p in _layout(codemap, grid)]
    if not covered:
        covered = [(0, len(raw), None)]
    for offset, size, ordinal in sorted(covered):
        for at in range(offset + -offset % 8, min(offset + size, len(raw)) - 7, 8):
            value = int.from_bytes(raw[at : at + 8], "little")
            if _LOWEST <= value < _HIGHEST:
                found.append(PointerArgument(ordinal, at, value, nested=size > 8))
    return tuple(found)


class _Part(NamedTuple):
    offset: int
    size: int
    ordinal: int | None


def _layout(codemap: CodeMap, grid: GridRow) -> list[_Part]:
    mangled = codemap.kernel_of(grid)
    hit = codemap.at(grid.function_entry, grid)
    if hit is None or mangled is None:
        return []
    try:
        return [_Part(p.offset, p.size, p.ordinal) for p in hit.cubin.parameters(mangled)]
    except MalformedCubin:
        return []
