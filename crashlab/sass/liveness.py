"""Do registers still hold what the faulting instruction saw, when the lane already stands elsewhere?

The hardware reports faults late: the lane has run on from ``errorpc`` to its own PC. Every instruction
that lies on some path between the two is looked at. Loads wait for their own destination, so a lane
cannot have come round to a faulting load a second time; a store has nothing to wait for, so it can
(a warp may even have exited): then what the loop around the store changes counts too.
"""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from crashlab.sass.bypass import bypass
from crashlab.sass.flow import Flow, flow_of
from crashlab.sass.line import SassLine
from crashlab.sass.operands import ParsedInstruction
from crashlab.sass.path import Path, path_between, waits_for_result


class LivenessResult(NamedTuple):
    """``intact``: the registers surely hold the values of the fault, and the lane surely executed it.

    ``state``: ``intact``; ``destroyed`` (an instruction on the straight way, or on the only way,
    writes one of them); ``bypass`` (the lane may have come to its PC without executing the faulting
    instruction); ``loop`` (intact if the lane came straight, not if it went round once more);
    ``unreachable`` (no path leads there); ``unknown``. ``straight`` is True when they are intact
    provided that the lane came straight from the fault: a caller that can confirm it otherwise (the
    rebuilt address is indeed a bad one) may use that. ``pc`` and ``text`` name the instruction that
    decides, ``registers`` those that it writes; ``reason`` is the sentence for the report.
    """

    intact: bool
    state: str
    reason: str | None = None
    pc: int | None = None
    text: str | None = None
    registers: tuple[str, ...] = ()
    straight: bool = False


def redefinition(
    lines: Sequence[SassLine],
    errorpc: int,
    lane_pc: int | None,
    registers: Sequence[str],
    values: Mapping[str, int | None] | None = None,
) -> LivenessResult:
    """Judge ``registers`` (single names: R2, UR5, P0) of a lane that stands at ``lane_pc``.

    ``lines`` are all instructions of the code section. ``values`` are the lane's registers as dumped
    (predicates 0 or 1), used only to see that a predicated instruction or branch was off. The
    instruction at ``lane_pc`` has not been executed yet.
    """
    flow = flow_of(lines)
    start, end = flow.index.get(errorpc), None if lane_pc is None else flow.index.get(lane_pc)
    if start is None or end is None or lane_pc is None:
        where = "the lane's PC is not known" if lane_pc is None else f"{lane_pc:#x} is not in this code"
        return LivenessResult(
            False, "unknown", where if start is not None else f"{errorpc:#x} is not in this code"
        )
    wanted = frozenset(registers)
    fault = flow.parsed(start)
    own = None if fault is None else fault.defines
    if own is None:
        return _unknown(flow, start, "what it writes is not known")
    if wanted & set(own):
        text = f"{_names(wanted & set(own))} is written by the faulting instruction itself"
        return _result("destroyed", text, flow, start, wanted & set(own))
    return _judge(flow, path_between(flow, start, end), wanted, values or {})


def _judge(
    flow: Flow, path: Path, wanted: frozenset[str], values: Mapping[str, int | None]
) -> LivenessResult:
    if not path.reached:
        reason = f"no path within the function leads from the fault to the lane's PC {_pc(flow, path.end)}"
        return LivenessResult(False, "unreachable", reason)
    killers = [at for at in path.writers(wanted) if _was_executed(flow, at, path, values)]
    near = [at for at in killers if path.straight is not None and at in path.straight]
    first = next(iter(near or killers), None)
    if first is not None and (near or path.straight is None):
        return _destroyed(flow, first, wanted)
    # Uniform registers belong to the warp, and the warp did execute the faulting instruction.
    of_lane = any(not name.startswith("U") for name in wanted)
    around = bypass(flow, path.start, path.end, values) if of_lane else None
    if around is not None:
        reason = (
            f"the lane may have come to {_pc(flow, path.end)} without executing the faulting instruction,"
            f" through {_quote(flow, around)}"
        )
        return _result("bypass", reason, flow, around, (), path.straight is not None)
    if first is not None:
        found = _destroyed(flow, first, wanted)
        reason = f"{found.reason}, if the lane went round the loop once more"
        return found._replace(state="loop", reason=reason, straight=True)
    # A load that waits for its result cannot come again, so leaving and coming back is no way either.
    if path.unknown is not None and not waits_for_result(flow, path.start):
        reason = f"where {_quote(flow, path.unknown)} continues is not known: the lane may have come again"
        return _result("unknown", reason, flow, path.unknown, (), path.straight is not None)
    return LivenessResult(True, "intact", straight=path.straight is not None)


def _was_executed(flow: Flow, at: int, path: Path, values: Mapping[str, int | None]) -> bool:
    parsed = flow.parsed(at)
    return parsed is None or not _was_off(parsed, path, values)


def _was_off(parsed: ParsedInstruction, path: Path, values: Mapping[str, int | None]) -> bool:
    """The guard is off in the dump, and nothing on any path has changed it since."""
    if parsed.predicate is None:
        return False
    if parsed.predicate in ("PT", "UPT"):
        return parsed.predicate_negated
    value = values.get(parsed.predicate)
    if value is None or bool(value) != parsed.predicate_negated:
        return False
    return path.written is not None and parsed.predicate not in path.written


def _destroyed(flow: Flow, at: int, wanted: frozenset[str]) -> LivenessResult:
    defines = flow.defines(at)
    if defines is None:
        return _unknown(flow, at, "what it writes is not known")
    hit = wanted & set(defines)
    return _result("destroyed", f"{_names(hit)} was redefined at {_quote(flow, at)}", flow, at, hit)


def _unknown(flow: Flow, at: int, why: str) -> LivenessResult:
    return _result("unknown", f"{_quote(flow, at)}: {why}", flow, at, ())


def _result(
    state: str,
    reason: str,
    flow: Flow,
    at: int,
    names: Sequence[str] | frozenset[str],
    straight: bool = False,
) -> LivenessResult:
    line = flow.lines[at]
    return LivenessResult(False, state, reason, line.pc, line.text, tuple(sorted(names)), straight)


def _names(names: frozenset[str]) -> str:
    return ", ".join(sorted(names, key=lambda name: (name.rstrip("0123456789"), len(name), name)))


def _quote(flow: Flow, at: int) -> str:
    return f"{_pc(flow, at)} ({flow.lines[at].text})"


def _pc(flow: Flow, at: int) -> str:
    return f"{flow.lines[at].pc:#x}"
