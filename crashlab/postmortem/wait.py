"""What a standing warp does, from the instructions around its PC: spin, barrier, wait, run."""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

from collections.abc import Sequence
from typing import NamedTuple

from crashlab.errors import CrashlabError
from crashlab.gpucore.dump import CoreDump
from crashlab.gpucore.rows import LaneRow, WarpRow
from crashlab.postmortem.lanefile import LaneFile, evaluate
from crashlab.sass.line import SassLine
from crashlab.sass.liveness import redefinition
from crashlab.sass.loops import SpinLoop, find_spin_loop
from crashlab.sass.operands import parse

_BARRIERS = ("BAR.SYNC", "BAR.RED", "B2R", "BAR.ARV")
_CLUSTER = ("UCGABAR_WAIT", "CGABAR_WAIT", "UCGABAR_ARV")
_REACH = 3
_ENDS = ("BRA", "BRX", "JMP", "CALL", "RET", "EXIT", "BSYNC", "WARPSYNC")
_CONVERGENCE = ("BSYNC", "WARPSYNC", "WARPSYNC.COLLECTIVE")


class WaitState(NamedTuple):
    """``state``: spinning, barrier, waiting, running; None when the code could not be read.

    ``barrier`` is the number of a block's barrier and how many threads it waits for, where the
    instruction gives both.
    """

    state: str | None
    detail: str | None = None
    barrier: tuple[int, int] | None = None


def wait_state(dump: CoreDump, warp: WarpRow, lane: LaneRow, lines: Sequence[SassLine], pc: int) -> WaitState:
    """Judge one warp.

    A warp that waits at a block barrier stands one to three instructions past its ``BAR.SYNC``: the
    hardware lets it issue what does not depend on the barrier (seen on sm_90).
    """
    at = next((i for i, line in enumerate(lines) if line.pc == pc), None)
    if at is None:
        return WaitState(None)
    here, before = _opcode(lines[at].text), _opcode(lines[at - 1].text) if at else ""
    for line in reversed(lines[max(0, at - _REACH) : at + 1]):
        opcode = _opcode(line.text)
        if opcode.startswith(_BARRIERS):
            detail = f"at the block barrier {line.text} ({hex(line.pc)})"
            return WaitState("barrier", detail, _named_barrier(line.text))
        if opcode.startswith(_CLUSTER):
            return WaitState("waiting", f"at the cluster barrier {line.text} ({hex(line.pc)})")
        if line.pc != pc and opcode.startswith(_ENDS):
            break
    if "ACQBULK" in (here, before):
        return WaitState(
            "waiting", "for the grid launched before it (ACQBULK: programmatic dependent launch)"
        )
    loop = find_spin_loop(lines, pc)
    if loop is not None:
        return WaitState("spinning", loop.sentence + _polled(dump, warp, lane, lines, loop))
    if here.startswith(_CONVERGENCE) or before.startswith(_CONVERGENCE):
        return WaitState("waiting", f"lanes of the warp wait for each other at {lines[at].text}")
    if before.startswith("NANOSLEEP") or here.startswith("NANOSLEEP"):
        return WaitState("waiting", "asleep in NANOSLEEP")
    return WaitState("running")


def _named_barrier(text: str) -> tuple[int, int] | None:
    """Number and thread count of ``BAR.SYNC 0x3, 0x100``; None where a register holds one, or there is no count."""
    try:
        values = [o.value for o in parse(text).operands if not o.is_predicate]
    except CrashlabError:
        return None
    if len(values) < 2 or values[0] is None or values[1] is None:
        return None
    return values[0], values[1]


def _polled(dump: CoreDump, warp: WarpRow, lane: LaneRow, lines: Sequence[SassLine], loop: SpinLoop) -> str:
    """The address a spin loop looks at, and what stands there when memory was dumped; empty when unknown."""
    if loop.polled_pc is None or loop.polled_text is None or not loop.registers:
        return ""
    parsed = parse(loop.polled_text)
    if not parsed.addresses:
        return ""
    expr, values = parsed.addresses[0], LaneFile(dump, warp, lane)
    if not redefinition(lines, loop.polled_pc, lane.virtual_pc, expr.address_registers(), values).intact:
        return ""
    shared = expr.space == "shared"
    address = evaluate(expr, values, wide=not shared)
    if address is None:
        return ""
    text = f"; it looks at {'shared offset ' if shared else ''}{hex(address)}"
    width = parsed.width_bytes or 4
    raw = None if shared else dump.read_memory(address, width)
    return text + (f", which holds {hex(int.from_bytes(raw, 'little'))}" if raw else "")


def _opcode(text: str) -> str:
    words = text.split(None, 2)
    if not words:
        return ""
    return words[1] if words[0].startswith("@") and len(words) > 1 else words[0]
