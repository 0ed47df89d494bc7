"""What a lane can have executed between the faulting instruction and its own PC."""

from __future__ import annotations

from crashlab.sass.flow import Flow


def path_between(flow: Flow, start: int, end: int) -> Path:
    """The way from the fault at index ``start`` to just before index ``end``.

    Kept with the flow: thousands of lanes stand at a handful of PCs.
    """
    found = flow.paths.get((start, end))
    if found is None:
        found = flow.paths[start, end] = Path(flow, start, end)
    return found


def waits_for_result(flow: Flow, at: int) -> bool:
    """The instruction writes registers: it cannot be issued again before its result has come."""
    return any(name.startswith(("R", "UR")) for name in flow.defines(at) or ())


class Path:
    """Instructions that can have been executed after the fault and before the lane's PC.

    ``on``: their indices; ``written``: all that they write, None when that is not known. ``reached``
    is False when no path leads there. ``straight``: the instructions in between when the code falls
    through from fault to lane, else None. ``unknown``: an instruction ahead of the fault from which
    control may go anywhere, None when there is none.
    """

    def __init__(self, flow: Flow, start: int, end: int) -> None:
        self.flow, self.start, self.end = flow, start, end
        blocked = start if waits_for_result(flow, start) else None
        ahead = flow.forward(flow.successors(start), blocked)
        behind = flow.backward(flow.predecessors(end), blocked)
        self.reached = end in ahead or end == start
        self.on = tuple(sorted(ahead & behind))
        between = range(start + 1, end)
        falls = all(after in flow.successors(after - 1) for after in range(start + 1, end + 1))
        # For end == start nothing has been executed: as straight as can be.
        self.straight = frozenset(between) if falls and end >= start else None
        self.unknown = next((at for at in sorted(ahead) if flow.is_unknown(at) and at not in between), None)
        if self.straight is not None:
            self.unknown = next((at for at in between if flow.is_unknown(at)), self.unknown)
        self.written = self._written()
        self._writers: dict[frozenset[str], tuple[int, ...]] = {}

    def writers(self, wanted: frozenset[str]) -> tuple[int, ...]:
        """Indices of the instructions that write one of ``wanted``, or what is not known."""
        if wanted not in self._writers:
            self._writers[wanted] = tuple(
                at
                for at in self.on
                if (defines := self.flow.defines(at)) is None or not wanted.isdisjoint(defines)
            )
        return self._writers[wanted]

    def _written(self) -> frozenset[str] | None:
        found: set[str] = set()
        for at in self.on:
            defines = self.flow.defines(at)
            if defines is None:
                return None
            found.update(defines)
        return frozenset(found)
