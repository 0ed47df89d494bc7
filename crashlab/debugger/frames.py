"""Several backtraces of one transcript: which of them belongs to the fault."""

from __future__ import annotations

from crashlab.debugger.rows import Frame

MAX_FRAMES = 1024


class Backtraces:
    """Collects frames as they are printed; a frame #0 begins the next backtrace.

    Frames that do not count on from the one before are left out: their backtrace began elsewhere.
    """

    def __init__(self) -> None:
        self._groups: list[list[Frame]] = []
        self._count = 0

    def add(self, frame: Frame) -> None:
        """Take the next frame."""
        self._count += 1
        if not frame.level:
            self._groups.append([frame])
        elif self._groups and frame.level == (self._groups[-1][-1].level or 0) + 1:
            self._groups[-1].append(frame)

    @property
    def full(self) -> bool:
        """True when :data:`MAX_FRAMES` were taken: whoever recurses deeper is understood by then."""
        return self._count >= MAX_FRAMES

    def __bool__(self) -> bool:
        return bool(self._groups)

    def chosen(self) -> tuple[Frame, ...]:
        """The first backtrace, or a longer one of the same frame #0: opening a dump prints only #0."""
        if not self._groups:
            return ()
        best = self._groups[0]
        for group in self._groups[1:]:
            same = (group[0].pc, group[0].function) == (best[0].pc, best[0].function)
            if same and len(group) > len(best):
                best = group
        return tuple(best)
