"""Signals as a queue: handlers only note them, the supervisor acts between two looks."""

from __future__ import annotations

import collections
import os
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Requests to end. A closed terminal sends SIGHUP; under nohup it is ignored, and stays so."""
FORWARDED = (signal.SIGQUIT, signal.SIGUSR2)
"""Handed on as they are: a program may answer them and go on (the JVM prints its threads at SIGQUIT)."""
EVIDENCE = signal.SIGUSR1


class SignalBox:
    """Use as a context manager. Outside the main thread it collects nothing (Python forbids handlers)."""

    def __init__(self) -> None:
        self.pending: collections.deque[int] = collections.deque()
        self._old: dict[int, Any] = {}
        self._old_wakeup = -1
        self.wake, self._wake_write = os.pipe()
        for fd in (self.wake, self._wake_write):
            os.set_blocking(fd, False)

    def __enter__(self) -> SignalBox:
        if threading.current_thread() is threading.main_thread():
            self._old_wakeup = signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
            for number in (*STOPPING, *FORWARDED, EVIDENCE):
                if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
                    continue
                self._old[number] = signal.signal(number, self._note)
            # A handler of our own makes the end of a child wake us up.
            self._old[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, _nothing)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        if self._old:
            signal.set_wakeup_fd(self._old_wakeup)
        for fd in (self.wake, self._wake_write):
            os.close(fd)

    def wait(self, seconds: float, also: int) -> None:
        """Sleep until a signal, something to read on ``also``, or the time is up."""
        with suppress(OSError, ValueError, InterruptedError):
            select.select([self.wake, also], [], [], seconds)
        with suppress(OSError):
            while os.read(self.wake, 4096):
                pass

    def take(self) -> list[int]:
        """The signals that came since the last call, in order."""
        out = []
        while self.pending:
            out.append(self.pending.popleft())
        return out

    @contextmanager
    def released(self) -> Iterator[None]:
        """For long work between attempts: the stopping signals raise KeyboardInterrupt meanwhile."""
        noted = {number: signal.getsignal(number) for number in STOPPING if number in self._old}
        for number in noted:
            signal.signal(number, _interrupt)
        try:
            yield
        finally:
            for number, handler in noted.items():
                signal.signal(number, handler)

    def wants_stop(self) -> bool:
        """Whether a request to stop is waiting to be taken."""
        return any(number in STOPPING for number in list(self.pending))

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.pending.append(number)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _nothing(number: int, frame: FrameType | None) -> None:
    """Handler of SIGCHLD: the wake-up is all that is wanted."""


def send(pids: list[int], number: int, group: int | None = None) -> None:
    """Signal each process, and a whole process group first. Who has gone already is no error."""
    if group is not None:
        with suppress(OSError):
            os.killpg(group, number)
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, number)
