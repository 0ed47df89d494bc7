"""How long to wait for a dump that is being written: nearly always until it is done, never for ever."""

from __future__ import annotations

from typing import NamedTuple

UNHELD_QUIET = 20.0
"""Seconds without a byte or a line after which a dump that no process holds open counts as abandoned."""
HELD_QUIET = 180.0
"""The same while a process still has the file open: a slow disk pauses, a hung writer never returns."""


class Limits(NamedTuple):
    """``total`` seconds for all dumps of one attempt; ``bytes`` for all its dump files, None: no limit."""

    total: float = 3600.0
    bytes: int | None = None


class Sight(NamedTuple):
    """What is seen now. ``announced``: a driver has begun and not ended; ``files`` grow or are open;
    ``size`` of all dump files; ``alive``: somebody is left who could write."""

    announced: bool
    files: int
    size: int
    alive: bool
    lines: int = 0


class DumpPatience:
    """Decides from time-stamped sights whether to go on waiting. Pure: it reads no clock."""

    def __init__(self, limits: Limits) -> None:
        self.gave_up: str | None = None
        self._limits = limits
        self._since: float | None = None
        self._moved = 0.0
        self._last: tuple[int, int, int] | None = None

    def busy(self, sight: Sight, now: float) -> bool:
        """True while nobody must be killed. Sets :attr:`gave_up` once, with the reason, at a limit."""
        if not sight.alive or not (sight.announced or sight.files):
            self._since = self._last = None
            return False
        if self.gave_up is not None:
            return False
        mark = (sight.size, sight.files, sight.lines)
        if self._since is None:
            self._since = now
        if mark != self._last:
            self._last, self._moved = mark, now
        quiet, waited = now - self._moved, now - self._since
        limit = HELD_QUIET if sight.files else UNHELD_QUIET
        if quiet >= limit:
            self.gave_up = f"the dump has not moved for {quiet:.0f} s"
        elif waited >= self._limits.total:
            self.gave_up = f"the dump has taken {waited:.0f} s"
        elif self._limits.bytes is not None and sight.size > self._limits.bytes:
            self.gave_up = f"the dump has {sight.size:,} bytes; the limit is {self._limits.bytes:,}"
        return self.gave_up is None
