"""Can a lane stand where it stands without having executed the faulting instruction?"""

from __future__ import annotations

from collections.abc import Mapping

from crashlab.sass.flow import Flow

_MOST_BRANCHES = 24
_PREDICATES = tuple(f"{prefix}{number}" for prefix in ("P", "UP") for number in range(7))


def bypass(flow: Flow, fault: int, end: int, values: Mapping[str, int | None]) -> int | None:
    """A branch (or an entry) through which ``end`` can be reached past ``fault``; None: there is none.

    A branch whose predicate still holds the value that it had is followed only in the direction that
    the lane took.
    """
    if end == fault:
        return None
    key = (fault, end, *(values.get(name) for name in _PREDICATES))
    if key not in flow.bypasses:
        flow.bypasses[key] = _search(flow, fault, end, values)
    return flow.bypasses[key]


def _search(flow: Flow, fault: int, end: int, values: Mapping[str, int | None]) -> int | None:
    seen, todo, entry, asked = {end}, [end], None, 0
    while todo and entry is None:
        here = todo.pop()
        before = flow.predecessors(here)
        if not before or here == 0:  # a function may begin with a loop's head
            entry = here
        for came_from in before:
            if came_from == fault or came_from in seen:
                continue
            if came_from in flow.edges and asked < _MOST_BRANCHES:
                asked += 1
                if _excluded(flow, came_from, here, end, values):
                    continue
            seen.add(came_from)
            todo.append(came_from)
    if entry is None:
        return None
    to_fault = flow.backward([fault])
    forks = [at for at in seen & to_fault if len(flow.successors(at)) > 1 and seen & set(flow.successors(at))]
    return max((at for at in forks if at < fault), default=max(forks, default=entry))


def _excluded(flow: Flow, branch: int, to: int, end: int, values: Mapping[str, int | None]) -> bool:
    """The branch did not go to ``to``: its guard says so, and has not changed on any way to ``end``."""
    parsed = flow.parsed(branch)
    targets = flow.successors(branch)
    if parsed is None or parsed.predicate is None or parsed.opcode not in ("BRA", "EXIT"):
        return False
    # Only a plain guarded branch: BRA.U and its like have a second condition.
    if any(operand.kind not in ("integer",) for operand in parsed.operands) or len(set(targets)) > 2:
        return False
    value = values.get(parsed.predicate)
    if value is None:
        return False
    falls_to = branch + 1
    if parsed.opcode == "BRA" and set(targets) == {falls_to}:  # to the next instruction either way
        return False
    taken = bool(value) != parsed.predicate_negated
    if taken != (to == falls_to):
        return False
    between = flow.forward(targets) & flow.backward([end])
    return all(
        (defines := flow.defines(at)) is not None and parsed.predicate not in defines for at in between
    )
