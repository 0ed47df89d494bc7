"""The program and everything that it started: seen with psutil, reaped when orphaned."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import psutil

_PR_SET_CHILD_SUBREAPER = 36
_MIN_INTERVAL = 0.5
_COST_SHARE = 500.0
"""Between two looks at least this many times the duration of one passes: a fifth of a percent of a core."""


class Proc(NamedTuple):
    """One process. ``created`` tells it from a later one with the same number."""

    pid: int
    ppid: int | None
    created: float
    name: str
    argv: tuple[str, ...]


class Change(NamedTuple):
    """What a look found new."""

    started: tuple[Proc, ...]
    gone: tuple[Proc, ...]


def become_subreaper() -> bool:
    """Let orphaned descendants become our children, so that none can get away (Linux 3.4).

    A process whose number is 1 is their parent anyway. False if the kernel refuses.
    """
    if os.getpid() == 1:
        return True
    try:
        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


class ProcessTree:
    """Descendants of ``root`` and orphans that came to us. ``ours`` are children that are none of it."""

    def __init__(self, root: int, ours: tuple[int, ...] = ()) -> None:
        self.root = root
        self.known: dict[int, Proc] = {}
        self._ours = set(ours)
        self._next = 0.0
        self.reaped: list[tuple[int, int]] = []

    def own(self, pid: int) -> None:
        """A child of ours that is no part of the program: it is neither watched nor reaped here."""
        self._ours.add(pid)

    def due(self, now: float) -> bool:
        """Whether it is time for another look."""
        return now >= self._next

    def scan(self, now: float) -> Change:
        """Look at all descendants once, and reap orphans that have ended."""
        before = time.process_time()
        alive = {proc.pid: proc for proc in self._descendants()}
        started = tuple(p for p in alive.values() if self._is_new(p))
        gone = tuple(
            p for pid, p in self.known.items() if pid not in alive or alive[pid].created != p.created
        )
        self.known = alive
        self._reap()
        self._next = now + max(_MIN_INTERVAL, (time.process_time() - before) * _COST_SHARE)
        return Change(started, gone)

    def alive(self) -> list[Proc]:
        """Those that run now (zombies do not), looked up anew."""
        return [proc for proc in self._descendants() if not _is_zombie(proc.pid)]

    def open_files(self) -> Iterator[str]:
        """Paths that processes of the tree have open."""
        for pid in list(self.known) or [self.root]:
            folder = f"/proc/{pid}/fd"
            with suppress(OSError):
                for name in os.listdir(folder):
                    with suppress(OSError):
                        path = os.readlink(f"{folder}/{name}")
                        if path.startswith("/"):
                            yield path

    def _is_new(self, proc: Proc) -> bool:
        old = self.known.get(proc.pid)
        return old is None or old.created != proc.created

    def _descendants(self) -> Iterator[Proc]:
        try:
            found = psutil.Process().children(recursive=True)
        except psutil.Error:
            return
        ours = self._with_descendants(found)
        for process in found:
            if process.pid not in ours:
                proc = self._describe(process)
                if proc is not None:
                    yield proc

    def _with_descendants(self, found: list[psutil.Process]) -> set[int]:
        """Our own helpers and what they started."""
        out = set(self._ours)
        if not out:
            return out
        for process in found:  # parents come before children
            with suppress(psutil.Error):
                if process.ppid() in out:
                    out.add(process.pid)
        return out

    def _describe(self, process: psutil.Process) -> Proc | None:
        try:
            created = process.create_time()
            old = self.known.get(process.pid)
            # A process may replace its program (exec) soon after its start.
            if old is not None and old.created == created and old.argv and time.time() - created > 5:
                return old
            with process.oneshot():
                argv = tuple(process.cmdline())
                return Proc(process.pid, process.ppid(), created, process.name(), argv)
        except psutil.ZombieProcess:
            return Proc(process.pid, None, created, old.name if old else "", old.argv if old else ())
        except (psutil.Error, OSError):
            return None

    def _reap(self) -> None:
        """Collect orphans that have ended. The root and our own helpers are collected by their owners."""
        for pid in list(self.known):
            if pid == self.root or pid in self._ours or not _is_zombie(pid):
                continue
            with suppress(OSError):
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    self.reaped.append((pid, os.waitstatus_to_exitcode(status)))
                    self.known.pop(pid, None)


def _is_zombie(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read(4096).rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except (OSError, IndexError):
        return False
