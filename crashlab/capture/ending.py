"""End a program and all that it started: ask, wait, insist, and say what could not be ended."""

from __future__ import annotations

import signal
from typing import NamedTuple

from crashlab.capture.signals import send
from crashlab.capture.tree import ProcessTree

UNKILLABLE_SECONDS = 15.0
"""After SIGKILL a process can only still exist if the kernel does not let it go (state D in the driver)."""


class Step(NamedTuple):
    """What was done in one look: ``asked``, ``killed`` (numbers), or nothing. ``over``: no more can be done."""

    asked: tuple[int, ...] = ()
    killed: tuple[int, ...] = ()
    over: bool = False
    left: tuple[int, ...] = ()


class Ending:
    """One ending in progress. Call :meth:`advance` at each look until it says ``over``."""

    def __init__(self, reason: str, number: int, grace: float, *, group: int) -> None:
        self.reason = reason
        self.number = number
        self._grace = grace
        self._group = group
        self.hurried = False
        self._asked_at: float | None = None
        self._killed_at: float | None = None

    @property
    def begun(self) -> bool:
        """Whether anything was sent yet."""
        return self._asked_at is not None

    def hurry(self) -> None:
        """Do not wait any longer: the next step kills."""
        self._grace = 0.0
        self.hurried = True

    def advance(self, tree: ProcessTree, now: float) -> Step:
        """Do the next thing. The caller has made sure that no dump is being written."""
        living = [process.pid for process in tree.alive()]
        if not living:
            return Step(over=True)
        if self._asked_at is None:
            self._asked_at = now
            # Processes outside the group (own sessions, daemons) are asked one by one, the group at once.
            send([pid for pid in living if not _in_group(pid, self._group)], self.number, self._group)
            return Step(asked=tuple(living))
        if now - self._asked_at < self._grace:
            return Step()
        if self._killed_at is not None and now - self._killed_at > UNKILLABLE_SECONDS:
            return Step(over=True, left=tuple(living))
        first = self._killed_at is None
        if first:
            self._killed_at = now
        # Each time anew: they may have bred meanwhile.
        send(living, signal.SIGKILL, self._group)
        return Step(killed=tuple(living) if first else ())


def _in_group(pid: int, group: int) -> bool:
    import os

    try:
        return os.getpgid(pid) == group
    except OSError:
        return False
