"""Do registers still hold what the faulting instruction saw, when the lane already stands elsewhere?

The hardware reports faults late: the lane has run on from ``errorpc`` to its own PC. Every instruction
that lies on some path between the two is looked at. Loads wait for their own destination, so a lane
cannot have come round to a faulting load a second time; a store has nothing to wait for, so it can
(a warp may even have exited): then what the loop around the store changes counts too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from crashlab.sass.bypass import bypass
from crashlab.sass.flow import Flow, flow_of
from crashlab.sass.line import SassLine
from crashlab.sass.operands import ParsedInstruction


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


def path_between(flow: Flow, start: int, end: int) -> Path:
    """What a lane can have executed after the fault at index ``start`` and before index ``end``.

    Kept with the flow: thousands of lanes stand at a handful of PCs.
    """
    found = flow.paths.get((start, end))
    if found is None:
        found = flow.paths[start, end] = Path(flow, start, end, start if waits_for_result(flow, start) else None)
    return found


def waits_for_result(flow: Flow, at: int) -> bool:
    """The instruction writes registers: it cannot be issued again before its result has come."""
    return any(name.startswith(("R", "UR")) for name in flow.defines(at) or ())


class Path:
    """Instructions that can have been executed after the fault and before the lane's PC."""

    def __init__(self, flow: Flow, start: int, end: int, blocked: int | None) -> None:
        self.start, self.end = start, end
        ahead = flow.forward(flow.successors(start), blocked)
        behind = flow.backward(flow.predecessors(end), blocked)
        self.reached = end in ahead or end == start
        self.on = ahead & behind
        between = range(start + 1, end)
        falls = all(after in flow.successors(after - 1) for after in range(start + 1, end + 1))
        # For end == start nothing has been executed: as straight as can be.
        self.straight = frozenset(between) if falls and end >= start else None
        self.unknown = next((at for at in sorted(ahead) if flow.is_unknown(at) and at not in between), None)
        if self.straight is not None:
            self.unknown = next((at for at in between if flow.is_unknown(at)), self.unknown)


def _judge(
    flow: Flow, path: Path, wanted: frozenset[str], values: Mapping[str, int | None]
) -> LivenessResult:
    if not path.reached:
        reason = f"no path within the function leads from the fault to the lane's PC {_pc(flow, path.end)}"
        return LivenessResult(False, "unreachable", reason)
    killers = [at for at in sorted(path.on) if _kills(flow, at, wanted, path, values)]
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


def _kills(flow: Flow, at: int, wanted: frozenset[str], path: Path, values: Mapping[str, int | None]) -> bool:
    defines = flow.defines(at)
    if defines is None:
        return True
    if not wanted & set(defines):
        return False
    parsed = flow.parsed(at)
    return parsed is None or not _was_off(flow, parsed, path, values)


def _was_off(flow: Flow, parsed: ParsedInstruction, path: Path, values: Mapping[str, int | None]) -> bool:
    """The guard is off in the dump, and nothing on any path has changed it since."""
    if parsed.predicate is None:
        return False
    if parsed.predicate in ("PT", "UPT"):
        return parsed.predicate_negated
    value = values.get(parsed.predicate)
    if value is None or bool(value) != parsed.predicate_negated:
        return False
    return all(
        (defines := flow.defines(at)) is not None and parsed.predicate not in defines for at in path.on
    )


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
