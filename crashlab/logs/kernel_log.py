"""NVIDIA's lines in the kernel log: Xid events, and processes that the kernel itself ended.

Reads dmesg (with uptime, ``-T`` or ISO stamps, or none), journalctl and syslog files.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from crashlab.facts import EnvFact, XidEvent
from crashlab.logs.lazy import Lazy
from crashlab.logs.text import Line, read_lines
from crashlab.logs.xid import XidDetail, split_time, with_owners, xid_of

MAX_XIDS = 4096
_MAX_KILLS = 256

_DRIVER = Lazy(r"NVRM: loading NVIDIA UNIX [^\n]{0,120}? (\d{3}\.\d{1,4}(?:\.\d{1,4})?) ")
_OOM = Lazy(r"[Oo]ut of memory: Kill(?:ed)? process (\d{1,9}) \(([^)]{0,64})\)")
_SEGV = Lazy(r"([^\s:\[]{1,64})\[(\d{1,9})\]: (?:segfault at |trap )")


class KilledProcess(NamedTuple):
    """A process that the kernel ended or saw crash. ``how``: oom-kill or segfault."""

    how: str
    pid: int
    name: str
    line: int
    time: str | None
    text: str


class KernelLog(NamedTuple):
    """Everything of interest in a kernel log, in order."""

    xids: tuple[XidDetail, ...] = ()
    killed: tuple[KilledProcess, ...] = ()
    driver: EnvFact | None = None
    dropped: int = 0

    @property
    def events(self) -> tuple[XidEvent, ...]:
        """The plain facts of all Xid lines."""
        return tuple(one.event for one in self.xids)


class KernelLogReader:
    """Feed lines; :meth:`result` may be asked at any time. Memory is bounded."""

    def __init__(self) -> None:
        self._xids: list[XidDetail] = []
        self._killed: list[KilledProcess] = []
        self._driver: EnvFact | None = None
        self._dropped = 0

    def feed(self, line: Line) -> bool:
        """Read one line; True if it was used."""
        text = line.text
        if "NVRM" in text:
            if xid := xid_of(line):
                return self._xid(xid)
            if loaded := _DRIVER.search(text):
                self._driver = EnvFact(loaded.group(1), f"kernel-log:line {line.number}")
                return True
            return False
        if "ill" not in text and "segfault" not in text and "trap " not in text:
            return False
        return self._kill(line)

    def result(self) -> KernelLog:
        """What was read so far."""
        return KernelLog(tuple(with_owners(self._xids)), tuple(self._killed), self._driver, self._dropped)

    def _xid(self, xid: XidDetail) -> bool:
        if len(self._xids) >= MAX_XIDS:
            self._dropped += 1
        else:
            self._xids.append(xid)
        return True

    def _kill(self, line: Line) -> bool:
        if len(self._killed) >= _MAX_KILLS:
            return False
        time, text = split_time(line)
        if found := _OOM.search(text):
            how, pid, name = "oom-kill", found.group(1), found.group(2)
        elif found := _SEGV.search(text):
            how, pid, name = "segfault", found.group(2), found.group(1)
        else:
            return False
        self._killed.append(KilledProcess(how, int(pid), name, line.number, time, text[:512]))
        return True


def read_kernel_log(source: Iterable[bytes | str] | bytes | str) -> KernelLog:
    """Parse a whole text, or the lines of one. Raises nothing, whatever the bytes."""
    reader = KernelLogReader()
    for line in read_lines(source):
        reader.feed(line)
    return reader.result()
