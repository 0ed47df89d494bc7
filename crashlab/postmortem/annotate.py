"""Notes for the instruction window: operand values at the fault, and where the address came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from crashlab.facts import Hex, WindowLine
from crashlab.gpucore.dump import CoreDump
from crashlab.postmortem.accesses import Access
from crashlab.postmortem.codemap import CodeHit
from crashlab.postmortem.lanefile import LaneFile
from crashlab.sass.address import AddressExpr
from crashlab.sass.slice import SliceStep


class Notes(NamedTuple):
    """Notes by PC for the window, and the instructions that computed the address, nearest first."""

    by_pc: dict[int, str]
    origin: tuple[WindowLine, ...] = ()


def window_notes(
    dump: CoreDump,
    code: CodeHit | None,
    steps: Sequence[SliceStep],
    pc: int,
    expr: AddressExpr,
    shown: Access | None,
) -> Notes:
    """Values of the lane ``shown`` at the faulting line, and what earlier instructions gave to the address.

    ``steps`` is the backward slice of the address's registers.
    """
    notes: dict[int, str] = {}
    origin = []
    needed = expr.address_registers()
    for step in steps:
        if not step.defines:
            continue
        notes[step.pc] = f"makes {', '.join(step.defines)} of the address"
        source = code.source_of(step.pc) if code else None
        origin.append(
            WindowLine(
                Hex(step.pc),
                step.text,
                note=f"makes {', '.join(step.defines)}",
                line=source.line if source else None,
            )
        )
    if shown is not None and shown.how is None and needed:
        values = LaneFile(dump, shown.warp, shown.row)
        parts = [f"{name}={hex(values[name])}" for name in needed if name in values]
        notes[pc] = f"lane {shown.lane}: {', '.join(parts)} -> {hex(shown.address or 0)}"
    return Notes(notes, tuple(origin))
