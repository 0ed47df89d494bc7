"""Warp-group matrix products: the shared-memory descriptors of their operands.

Bits 0 to 13 of a matrix descriptor hold the shared address divided by 16 (PTX ISA, "Matrix Descriptor
Format" of wgmma and tcgen05).
"""

from __future__ import annotations

from collections.abc import Sequence

from crashlab import facts
from crashlab.gpucore.dump import CoreDump
from crashlab.postmortem.accesses import Question, accesses
from crashlab.postmortem.attribute import Attribution
from crashlab.postmortem.judge import shared
from crashlab.sass.line import SassLine
from crashlab.sass.operands import ParsedInstruction

_ADDRESS_MASK = 0x3FFF
_UNIT = 16
_OUT_OF_RANGE = 5
_WHY = "from the matrix descriptor"


def matrix_address(
    dump: CoreDump, attribution: Attribution, lines: Sequence[SassLine], parsed: ParsedInstruction
) -> facts.Address:
    """Where the descriptors point; judged against the block's shared memory for an out-of-range exception."""
    pc = attribution.fault.pc or 0
    found, why = [], "its descriptors are not in uniform registers"
    for expr in parsed.addresses:
        if expr.form != "gdesc":
            continue
        pair = expr._replace(uniform_bits=64)
        read = accesses(dump, attribution.group.warps, Question(lines, pc, parsed, pair, True))
        first = next((a for a in read if a.address is not None), None)
        if first is None or first.address is None:
            why = next((a.why for a in read if a.why), why)
            continue
        found.append((expr, first, (first.address & _ADDRESS_MASK) * _UNIT))
    if not found:
        return facts.Address("not-recoverable", why=why, space="shared")
    warp = attribution.group.warps[0].warp
    limit = warp.shared_mem_size if warp else None
    parts = [
        f"{expr.uniform} = {hex(a.address or 0)} points to shared offset {hex(at)}" for expr, a, at in found
    ]
    text = f"{parsed.opcode} took its matrix descriptors from {', '.join(parts)}"
    _, first, offset = max(found, key=lambda item: item[2])
    judged = shared((first._replace(address=offset),), _UNIT, limit, reserved=True)
    if judged is None or attribution.group.code != _OUT_OF_RANGE:
        return facts.Address(
            "recovered", facts.Hex(offset), space="shared", finding=text, why="from the matrix descriptor"
        )
    return facts.Address(
        "recovered",
        facts.Hex(offset),
        space="shared",
        why=_WHY,
        finding=f"{text}; {judged.sentence.split('; ', 1)[-1]}",
        kind=judged.kind,
        limit=limit,
        width_bytes=_UNIT,
    )
