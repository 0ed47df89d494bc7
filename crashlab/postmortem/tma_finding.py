"""What the dump tells about a faulting TMA instruction: its descriptor first of all."""

from __future__ import annotations

from collections.abc import Sequence

from crashlab import facts
from crashlab.gpucore.dump import CoreDump
from crashlab.postmortem.attribute import Attribution
from crashlab.postmortem.codemap import CodeMap
from crashlab.postmortem.evidence import faulting_lanes
from crashlab.postmortem.lanefile import LaneFile, evaluate
from crashlab.postmortem.tma import descriptor_at
from crashlab.sass.line import SassLine
from crashlab.sass.liveness import redefinition
from crashlab.sass.operands import ParsedInstruction


def tma_address(
    dump: CoreDump,
    codemap: CodeMap,
    attribution: Attribution,
    lines: Sequence[SassLine],
    parsed: ParsedInstruction,
) -> tuple[facts.Address, dict[int, str]]:
    """The descriptor's address and content; the address inside the tensor is not recoverable from it."""
    pc = attribution.fault.pc or 0
    expr = next(e for e in parsed.addresses if e.role == "descriptor")
    report = attribution.group.warps[0]
    if report.warp is None:
        return facts.Address("not-recoverable", why="the faulting warp had exited"), {}
    lane = faulting_lanes(dump, report.warp)[0]
    values = LaneFile(dump, report.warp, lane)
    survived = redefinition(lines, pc, lane.virtual_pc, expr.address_registers(), values)
    if not survived.intact:
        return facts.Address("not-recoverable", why=survived.reason, space="tma"), {}
    address = evaluate(expr, values, wide=True)
    if address is None:
        return facts.Address(
            "not-recoverable", why="its uniform registers are not in the dump", space="tma"
        ), {}
    found = descriptor_at(dump, codemap, report.grid, address)
    text = f"{parsed.opcode} took its tensor map from {found.address}, in {found.source}"
    if found.problem:
        text += f": {found.problem}"
    elif found.data is None:
        text += "; its content cannot be checked"
    else:
        text += "; its 128 bytes neither repeat nor are all zero, and more cannot be checked of an opaque descriptor"
    if found.data is not None:
        text += f" (first bytes {found.data[:16].hex()}, last {found.data[-16:].hex()})"
    kind = "bad-descriptor" if found.problem else "descriptor"
    fact = facts.Address(
        "recovered", facts.Hex(address), space="tma", finding=text, kind=kind, why="the descriptor's address"
    )
    return fact, {pc: f"tensor map at {found.address}"}
