"""Where a call or branch through a register went.

Apart from :mod:`crashlab.postmortem.jump`, which an answer in a hurry needs too: what is imported here would cost
it a tenth of its time.
"""

from __future__ import annotations

from collections.abc import Sequence

from crashlab import facts
from crashlab.gpucore.dump import CoreDump
from crashlab.postmortem.attribute import Attribution
from crashlab.postmortem.evidence import faulting_lanes
from crashlab.postmortem.lanefile import LaneFile, block_constants, evaluate
from crashlab.sass.address import AddressExpr
from crashlab.sass.line import SassLine
from crashlab.sass.liveness import redefinition
from crashlab.sass.operands import ParsedInstruction
from crashlab.sass.registers import run

_INSTRUCTION = 16
_FETCH = 128


def jump_target(
    dump: CoreDump, attribution: Attribution, lines: Sequence[SassLine], parsed: ParsedInstruction
) -> facts.Address | None:
    """Where a call or branch through a register went: its operands, else the PC that its threads stand at."""
    report = attribution.group.warps[0]
    if report.warp is None:
        return None
    lane = faulting_lanes(dump, report.warp)[0]
    values = LaneFile(dump, report.warp, lane, block_constants(dump, report.cta, report.grid))
    target = _from_operands(parsed, values, lines, attribution.fault.pc or 0, lane.virtual_pc)
    if target is None:
        return None
    text = f"{parsed.text} jumped to {hex(target)}"
    if target % _INSTRUCTION:
        text += f", which is {target % _INSTRUCTION} modulo {_INSTRUCTION}: no instruction can stand there"
    else:
        text += ": a corrupt function pointer or return address"
    return facts.Address(
        "recovered", facts.Hex(target), space="code", finding=text, kind="corrupt-code-pointer"
    )


def _from_operands(
    parsed: ParsedInstruction, values: LaneFile, lines: Sequence[SassLine], errorpc: int, lane_pc: int
) -> int | None:
    """Register pair plus the immediate, as ``CALL.REL R6 0x…`` adds them; None when it does not survive.

    The lane's own PC, when it lies outside the code, confirms the sum to within one fetch group.
    """
    pair = next((o.register for o in parsed.operands if o.kind == "register" and o.register), None)
    if pair is None:
        return None
    base = next((o.value for o in parsed.operands if o.kind == "integer" and o.value is not None), 0)
    target = evaluate(AddressExpr("memory", pair, 64, offset=base), values, wide=True)
    outside = not any(line.pc == lane_pc for line in lines)
    if outside:
        return target if target is not None and abs(target - lane_pc) < _FETCH else lane_pc
    intact = redefinition(lines, errorpc, lane_pc, run(pair, 2), values).intact
    return target if intact else None
