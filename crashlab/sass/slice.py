"""Where the registers of an address came from: the instructions that computed them, nearest first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from crashlab.sass.flow import Flow, flow_of
from crashlab.sass.line import SassLine
from crashlab.sass.regions import untouching_region

_REACH = 4096


class SliceStep(NamedTuple):
    """One instruction that computed something needed, or the place where looking ended.

    ``defines`` are the needed registers it writes, ``reads`` what it made them from. A stop has no
    ``defines``: ``stop`` says why (function entry, call, merge point, unknown instruction, limit) and
    ``reads`` lists the registers whose origin stays open.
    """

    pc: int
    text: str
    defines: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    stop: str | None = None


def backward_slice(
    lines: Sequence[SassLine], pc: int, registers: Sequence[str], limit: int = 12
) -> tuple[SliceStep, ...]:
    """Go back from ``pc`` along the only way that leads there; at most ``limit`` instructions.

    A definition under a predicate leaves its register open as well: the older value may have stayed.
    Empty when ``pc`` is not in ``lines``.
    """
    flow = flow_of(lines)
    at = flow.index.get(pc)
    if at is None:
        return ()
    needed = dict.fromkeys(registers)
    steps: list[SliceStep] = []
    for _ in range(_REACH):
        if not needed:
            return tuple(steps)
        region = untouching_region(flow, at, needed)
        if region is None:
            stop = _stop(flow, at)
            if stop is None and len(steps) >= limit:
                stop = f"more than {limit} instructions"
            if stop is not None:
                return (*steps, SliceStep(lines[at].pc, lines[at].text, (), tuple(needed), stop))
        at = at - 1 if region is None else region.first
        step = _step(flow, at, needed)
        if step is None:
            continue
        if step.stop is not None:
            return (*steps, step)
        steps.append(step)
        if flow.lines[at].text[:1] != "@":
            for name in step.defines:
                needed.pop(name, None)
        needed.update(dict.fromkeys(step.reads))
    return tuple(steps)


def _stop(flow: Flow, at: int) -> str | None:
    """Why one cannot go back from ``at`` to the instruction above it."""
    before = flow.predecessors(at)
    if not before:
        return "function entry"
    if before != (at - 1,):
        return "merge point: more than one way leads here"
    return None


def _step(flow: Flow, at: int, needed: dict[str, None]) -> SliceStep | None:
    line = flow.lines[at]
    parsed = flow.parsed(at)
    if parsed is not None and parsed.access in ("branch", "exit", "return"):
        return None
    if parsed is not None and parsed.access == "call":
        return SliceStep(line.pc, line.text, (), tuple(needed), "call: the callee may have changed them")
    if parsed is None or parsed.defines is None:
        return SliceStep(line.pc, line.text, (), tuple(needed), "unknown instruction")
    hit = tuple(name for name in needed if name in parsed.defines)
    if not hit:
        return None
    if parsed.access in ("load", "atomic") and parsed.space != "constant":
        # What was loaded is data: its address is another question.
        guard = (parsed.predicate,) if parsed.predicate and parsed.predicate[-1] != "T" else ()
        return SliceStep(line.pc, line.text, hit, guard)
    return SliceStep(line.pc, line.text, hit, parsed.reads or ())
