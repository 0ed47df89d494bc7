"""Spin loops: a short way back to where a warp stands, with something in it that is polled."""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

from collections.abc import Sequence
from typing import NamedTuple

from crashlab.sass.flow import Flow, flow_of
from crashlab.sass.line import SassLine
from crashlab.sass.operands import ParsedInstruction

MOST_INSTRUCTIONS = 96

# Better evidence of waiting first.
_TRY_WAIT, _STRONG, _ATOMIC, _LOAD, _CLOCK, _EMPTY = range(6)
_CLOCKS = ("SR_CLOCK", "SR_GLOBALTIMER")


_KINDS = {
    _TRY_WAIT: ("mbarrier", "waits for an mbarrier"),
    _STRONG: ("load", "polls memory"),
    _ATOMIC: ("atomic", "tries an atomic"),
    _LOAD: ("load", "polls memory"),
    _CLOCK: ("clock", "waits for time to pass"),
}
_WORK = frozenset({"store", "reduce", "copy", "matrix", "call"})


class SpinLoop(NamedTuple):
    """The instructions from ``start`` to ``end`` (the branch back, included) are executed again and again.

    ``kind``: mbarrier (a try-wait), load, atomic, clock, sleep or empty (a branch to itself).
    ``polled_pc`` and ``polled_text`` name the instruction that looks for the change, None for an empty
    loop. ``registers`` are those of the polled address; ``sentence`` is ready for a report.
    """

    start: int
    end: int
    kind: str
    polled_pc: int | None
    polled_text: str | None
    sleeps: bool
    registers: tuple[str, ...]
    sentence: str


def find_spin_loop(lines: Sequence[SassLine], pc: int) -> SpinLoop | None:
    """The smallest loop around ``pc`` that waits for something; None when the warp is not in one.

    A loop waits when it changes nothing in memory and its way out depends on what it polls: loops
    with a store, a reduction or matrix work in them are taken for work.
    """
    flow = flow_of(lines)
    at = flow.index.get(pc)
    if at is None:
        return None
    for start, end in _loops_around(flow, at):
        found = _judge(flow, start, end)
        if found is not None:
            return found
    return None


def _loops_around(flow: Flow, at: int) -> list[tuple[int, int]]:
    """Backward branches that jump over ``at``, shortest first."""
    found = []
    for end in range(at, min(len(flow.lines), at + MOST_INSTRUCTIONS)):
        if end not in flow.edges or end in flow.calls:
            continue
        for start in flow.edges[end].targets:
            if start <= at and end - start < MOST_INSTRUCTIONS and _leads_back(flow, start, end):
                found.append((start, end))
    return sorted(found, key=lambda loop: loop[1] - loop[0])


def _leads_back(flow: Flow, start: int, end: int) -> bool:
    """From the loop's head one comes to its branch without leaving the range."""
    seen, todo = {start}, [start]
    while todo:
        for following in flow.successors(todo.pop()):
            if start <= following <= end and following not in seen:
                seen.add(following)
                todo.append(following)
    return end in seen


def _judge(flow: Flow, start: int, end: int) -> SpinLoop | None:
    polled: tuple[int, int, ParsedInstruction] | None = None
    sleeps = False
    for at in range(start, end + 1):
        parsed = flow.parsed(at)
        if parsed is None:
            return None
        sleeps = sleeps or parsed.opcode == "NANOSLEEP"
        rank = _rank(parsed)
        if rank is not None:
            if polled is None or rank < polled[0]:
                polled = (rank, at, parsed)
        elif parsed.opcode.endswith("MMA") or (parsed.access in _WORK and parsed.predicate is None):
            return None  # a store under a predicate is how an abort flag is passed on
    if polled is None:
        return _found(flow, start, end, _EMPTY, None, sleeps) if end == start or sleeps else None
    rank, at, parsed = polled
    if rank in (_LOAD, _CLOCK) and not _decides(flow, start, end, parsed):
        return None
    return _found(flow, start, end, rank, at, sleeps)


def _rank(parsed: ParsedInstruction) -> int | None:
    if parsed.opcode == "SYNCS" and "PHASECHK" in parsed.modifiers:
        return _TRY_WAIT
    if parsed.access == "atomic":
        return _ATOMIC
    if parsed.access == "load" and parsed.space in ("global", "generic", "shared"):
        return _STRONG if "STRONG" in parsed.modifiers or "MMIO" in parsed.modifiers else _LOAD
    if parsed.opcode in ("CS2R", "S2R", "S2UR", "CS2UR"):
        return _CLOCK if parsed.operands and parsed.operands[-1].text.startswith(_CLOCKS) else None
    return None


def _decides(flow: Flow, start: int, end: int, polled: ParsedInstruction) -> bool:
    """The loaded value reaches a predicate that guards a branch or exit of the loop."""
    tainted = set(polled.defines or ())
    for _ in range(2):  # once more for values that go round
        for at in range(start, end + 1):
            parsed = flow.parsed(at)
            if parsed is not None and parsed.reads and tainted & set(parsed.reads):
                if parsed.access in ("branch", "exit"):
                    return True
                tainted |= set(parsed.defines or ())
    return False


def _found(flow: Flow, start: int, end: int, rank: int, at: int | None, sleeps: bool) -> SpinLoop:
    first, last = flow.lines[start].pc, flow.lines[end].pc
    if at is None:
        kind = "sleep" if sleeps and end > start else "empty"
        what = "that sleeps and checks nothing in memory" if kind == "sleep" else "without any exit"
        sentence = f"in a loop {what}, {first:#x} to {last:#x}"
        return SpinLoop(first, last, kind, None, None, sleeps, (), sentence)
    kind, verb = _KINDS[rank]
    parsed = flow.parsed(at)
    addresses = parsed.addresses if parsed is not None else ()
    registers = addresses[0].address_registers() if addresses else ()
    line = flow.lines[at]
    rest = ", sleeping in between" if sleeps else ""
    sentence = f"{verb} with {line.text} ({line.pc:#x}) in a loop {first:#x} to {last:#x}{rest}"
    return SpinLoop(first, last, kind, line.pc, line.text, sleeps, registers, sentence)
