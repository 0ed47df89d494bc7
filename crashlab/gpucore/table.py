"""Rows out of table sections: any stride of any driver generation, bounds-checked."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TypeVar

from crashlab.gpucore import layout

RowT = TypeVar("RowT")


@lru_cache(maxsize=64)
def row_struct(kind: int, stride: int) -> tuple[struct.Struct, int]:
    """A Struct for one row of ``kind`` at ``stride`` and how many fields it yields.

    Only the fields that fit are read; padding bytes are skipped. A stride too short for even the
    first field yields zero fields.
    """
    text, at, fields = "<", 0, 0
    for _name, offset, code in layout.ROWS[kind]:
        width = 4 if code == "I" else 8
        if offset + width > stride:
            break
        text += f"{offset - at}x{code}" if offset > at else code
        at, fields = offset + width, fields + 1
    if stride > at:
        text += f"{stride - at}x"
    return struct.Struct(text), fields


def default_stride(kind: int) -> int:
    """The newest known stride: used only when a dump leaves ``sh_entsize`` at 0."""
    _name, offset, code = layout.ROWS[kind][-1]
    end = offset + (4 if code == "I" else 8)
    return (end + 7) // 8 * 8 if any(code == "Q" for _n, _o, code in layout.ROWS[kind]) else end


def rows(view: memoryview, kind: int, stride: int, section: int, make: Callable[..., RowT]) -> Iterator[RowT]:
    """Named tuples for each row of one table whose bytes are ``view``."""
    if stride <= 0 or stride > 4096:
        return
    unpacker, fields = row_struct(kind, stride)
    if not fields:
        return
    count = min(len(view) // stride, layout.ROW_LIMITS[kind])
    for row, values in enumerate(unpacker.iter_unpack(view[: count * stride])):
        yield make(section, row, *values)
