"""The address each lane of the faulting warps used, where its registers still hold it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from crashlab.facts import Dim3
from crashlab.gpucore.dump import CoreDump
from crashlab.gpucore.rows import GridRow, LaneRow, WarpRow
from crashlab.postmortem.evidence import WarpEvidence, active_lanes
from crashlab.postmortem.lanefile import LaneFile, block_constants, evaluate
from crashlab.sass.address import AddressExpr
from crashlab.sass.line import SassLine
from crashlab.sass.liveness import LivenessResult, redefinition
from crashlab.sass.operands import ParsedInstruction
from crashlab.sass.recompute import recompute

_WARP_LIMIT = 64


class Access(NamedTuple):
    """One lane and the address it used; ``why`` says why there is none.

    ``how`` is None when the registers still held the address, else it names the instructions it was
    computed from again. A ``tentative`` address is right if the lane came straight from the fault.
    """

    lane: int
    thread: Dim3 | None
    address: int | None
    off: bool
    why: str | None
    block: Dim3 | None
    sm: int | None
    warp: WarpRow
    row: LaneRow
    grid: GridRow | None
    how: str | None = None
    tentative: bool = False


class _Seen(NamedTuple):
    address: int | None = None
    off: bool = False
    why: str | None = None
    how: str | None = None
    tentative: bool = False


class Question(NamedTuple):
    """The operand whose address is wanted, and the code around it."""

    lines: Sequence[SassLine]
    errorpc: int
    parsed: ParsedInstruction
    expr: AddressExpr
    wide: bool


def accesses(dump: CoreDump, reports: Sequence[WarpEvidence], asked: Question) -> tuple[Access, ...]:
    """One :class:`Access` for each lane that executed (or whose guard was off), at most 64 warps."""
    out = []
    reader = _Reader(asked)
    for report in reports[:_WARP_LIMIT]:
        if report.warp is None:
            continue
        rows = dump.lanes(report.warp)
        marked = [row for row in rows if row.exception] or list(active_lanes(report.warp, rows))
        lanes = asked.parsed.address_lanes
        if lanes is not None:  # LDSM and STSM take row addresses from their first lanes only
            marked = [row for row in marked if row.lane is None or row.lane < lanes]
        elected = asked.parsed.opcode.startswith("U")
        if elected:  # the uniform datapath acts once for the warp, for a thread that the dump does not name
            marked = marked[:1]
        known = block_constants(dump, report.cta, report.grid)
        for row in marked:
            seen = reader.read(LaneFile(dump, report.warp, row, known), row.virtual_pc)
            out.append(
                Access(
                    row.lane if row.lane is not None else row.row,
                    None if elected else row.thread,
                    seen.address,
                    seen.off,
                    seen.why,
                    report.cta.block if report.cta else None,
                    report.sm.sm_id if report.sm else None,
                    report.warp,
                    row,
                    report.grid,
                    seen.how,
                    seen.tentative,
                )
            )
    return tuple(out)


class _Reader:
    """Reads lane after lane; what was found out for one holds for all that stand alike.

    The way from the fault to a lane's PC depends on the PC and on predicates only, and a dump can
    have thousands of faulting lanes at a handful of PCs.
    """

    def __init__(self, asked: Question) -> None:
        self._asked = asked
        guard = asked.parsed.predicate
        self._guard = guard if guard not in (None, "PT", "UPT") else None
        self._needed = (*asked.expr.address_registers(), *((self._guard,) if self._guard else ()))
        self._ways: dict[tuple[int | None, ...], LivenessResult] = {}
        self._lost: dict[tuple[int | None, ...], str | None] = {}

    def read(self, values: LaneFile, lane_pc: int) -> _Seen:
        """The address of one lane: from its registers, else computed again from what survives."""
        asked = self._asked
        alike = (lane_pc, *values.predicates())
        survived = self._ways.get(alike)
        if survived is None:
            survived = redefinition(asked.lines, asked.errorpc, lane_pc, self._needed, values)
            self._ways[alike] = survived
        if survived.intact:
            return _with(asked, values)
        if not survived.straight and survived.state not in ("destroyed", "loop"):
            return _Seen(why=survived.reason)
        if alike in self._lost:
            return _Seen(why=self._lost[alike])
        again = recompute(
            asked.lines, asked.errorpc, lane_pc, self._needed, values, straight=survived.straight
        )
        if again.values is None:
            self._lost[alike] = survived.reason or again.reason
            return _Seen(why=self._lost[alike])
        steps = ", ".join(f"{step.text} at {hex(step.pc)}" for step in again.steps[-3:])
        seen = _with(asked, {**values, **again.values})
        how = f"computed again from {steps}" if steps else None
        return seen._replace(how=how, tentative=survived.straight and survived.state == "loop")


def _with(asked: Question, registers: Mapping[str, int]) -> _Seen:
    parsed = asked.parsed
    guard = parsed.predicate
    if guard is not None:
        value = registers.get(guard)
        if value is None:
            return _Seen(why=f"its guard {guard} is not in the dump")
        if bool(value) == parsed.predicate_negated:
            return _Seen(off=True, why="its predicate was off: it did not access anything")
    address = evaluate(asked.expr, registers, wide=asked.wide)
    return _Seen(address) if address is not None else _Seen(why="its registers are not in the dump")
