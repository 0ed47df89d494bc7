"""Register counts of the bulk and tensor copies (TMA): runs of uniform registers in one bracket."""

from __future__ import annotations

import re
from collections.abc import Sequence

from crashlab.sass import registers
from crashlab.sass.operand import Operand
from crashlab.sass.shape import Modifiers, Shape


def _dimensions(modifiers: Modifiers) -> int | None:
    found = next((m for m in modifiers if re.fullmatch(r"[1-5]D", m)), None)
    return int(found[0]) if found else None


def tma_load(modifiers: Modifiers, _: Sequence[Operand]) -> Shape | None:
    """UTMALDG: shared address, mbarrier, then the coordinates; a gather has four rows instead of one."""
    dimensions = _dimensions(modifiers)
    if dimensions is None:
        return None
    return Shape(0, (2 + dimensions + (3 if "GATHER4" in modifiers else 0), 2, 1))


def tma_store(modifiers: Modifiers, _: Sequence[Operand]) -> Shape | None:
    """UTMASTG and UTMAREDG: shared address, then the coordinates."""
    dimensions = _dimensions(modifiers)
    if dimensions is None:
        return None
    return Shape(0, (1 + dimensions + (3 if "SCATTER4" in modifiers else 0), 2, 1))


def tma_prefetch(modifiers: Modifiers, _: Sequence[Operand]) -> Shape | None:
    """UTMAPF: the coordinates alone."""
    dimensions = _dimensions(modifiers)
    if dimensions is None:
        return None
    return Shape(0, (dimensions + (3 if "GATHER4" in modifiers else 0), 2, 1))


def bulk_prefetch(_: Modifiers, __: Sequence[Operand]) -> Shape:
    """UBLKPF: a pointer and a size."""
    return Shape(0, (2, 1))


def pairs(_: Modifiers, __: Sequence[Operand]) -> Shape:
    """Two pointers and a size."""
    return Shape(0, (2, 2, 1))


def bulk(modifiers: Modifiers, _: Sequence[Operand]) -> Shape | None:
    """Bulk copies: ``.S.G`` is to shared from global (shared address and mbarrier, then a pointer),
    ``.S.S`` to another block of the cluster."""
    direction = ".".join(m for m in modifiers if m in ("S", "G"))
    widths = {"S.G": (2, 2, 1), "G.S": (2, 1, 1), "S.S": (2, 1, 1)}.get(direction)
    return None if widths is None else Shape(0, widths)


def coordinates(opcode: str, modifiers: Modifiers, operands: Sequence[Operand]) -> tuple[str, ...]:
    """The uniform registers that hold the tensor coordinates, fastest dimension first.

    A gather or scatter has the column and then four rows. Empty when it is no tensor copy.
    """
    skipped = {"UTMALDG": 2, "UTMASTG": 1, "UTMAREDG": 1, "UTMAPF": 0}.get(opcode)
    dimensions = _dimensions(modifiers)
    if skipped is None or dimensions is None or not operands or operands[0].address is None:
        return ()
    first = operands[0].address.uniform
    rows = 3 if {"GATHER4", "SCATTER4"} & set(modifiers) else 0
    return registers.run(first, skipped + dimensions + rows)[skipped:] if first else ()
