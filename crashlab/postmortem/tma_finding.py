"""What the dump tells about a faulting TMA instruction: its descriptor first of all."""

from __future__ import annotations

from collections.abc import Sequence

from crashlab import facts
from crashlab.gpucore.dump import CoreDump
from crashlab.postmortem.accesses import Question, accesses
from crashlab.postmortem.attribute import Attribution
from crashlab.postmortem.codemap import CodeMap
from crashlab.postmortem.tma import descriptor_at
from crashlab.sass.line import SassLine
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
    read = accesses(dump, attribution.group.warps, Question(lines, pc, parsed, expr, True))
    shown = next((a for a in read if a.address is not None), None)
    if shown is None or shown.address is None:
        why = next((a.why for a in read if a.why), "no lane executed it")
        return facts.Address("not-recoverable", why=why, space="tma"), {}
    address = shown.address
    found = descriptor_at(dump, codemap, report.grid, address)
    text = f"{parsed.opcode} took its tensor map from {found.address}, in {found.source}"
    if found.problem:
        text += f": {found.problem}"
    elif found.data is None:
        text += "; its content cannot be checked"
    else:
        text += "; its 128 bytes neither repeat nor are all zero, and more cannot be checked of an opaque descriptor"
    if found.tensor is not None:
        text += f"; as far as its undocumented encoding was seen, it names the tensor at {found.tensor}"
    if found.data is not None:
        text += f" (first bytes {found.data[:16].hex()}, last {found.data[-16:].hex()})"
    kind = "bad-descriptor" if found.problem else "descriptor"
    how = f"the descriptor's address; {shown.how}" if shown.how else "the descriptor's address"
    fact = facts.Address("recovered", facts.Hex(address), space="tma", finding=text, kind=kind, why=how)
    return fact, {pc: f"tensor map at {found.address}"}
