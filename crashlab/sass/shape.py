"""How many registers each operand of one instruction stands for."""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

from collections.abc import Sequence
from typing import NamedTuple

from crashlab.sass.operand import Operand

Modifiers = tuple[str, ...]


class Shape(NamedTuple):
    """``destinations``: how many leading operands are defined (None: not known).

    ``widths``: registers an operand, by operand position; the last entry repeats. For an address it
    is the length of the uniform run in the bracket, 0 meaning what the text says.
    ``defines``, ``reads``: registers that the operands do not name. ``reads_known``: False when the
    operands do not show how many registers are read.
    """

    destinations: int | None
    widths: tuple[int, ...] = (1,)
    defines: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    reads_known: bool = True

    def width(self, position: int) -> int:
        return self.widths[min(position, len(self.widths) - 1)]


def before_address(operands: Sequence[Operand]) -> int:
    """How many operands stand before the first address: what a load or an atomic defines."""
    return next((i for i, operand in enumerate(operands) if operand.kind == "address"), len(operands))
