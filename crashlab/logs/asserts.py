"""Device-side assertion lines, as the CUDA runtime prints them.

Shape: ``FILE:LINE: FUNCTION: block: [x,y,z], thread: [x,y,z] Assertion `EXPR` failed.`` A failing
assertion prints one line for each thread, often thousands: equal assertions are counted, and the
first threads are kept.
"""

from __future__ import annotations

from typing import NamedTuple

from crashlab.facts import Dim3
from crashlab.logs.lazy import Lazy
from crashlab.logs.text import Line

MAX_ASSERTS = 256
MAX_THREADS = 64

_MARK = "Assertion `"
_PLACE = Lazy(
    r": block: \[(\d{1,10}),(\d{1,10}),(\d{1,10})\], thread: \[(\d{1,10}),(\d{1,10}),(\d{1,10})\] Assertion `"
)
_FILE_LINE = Lazy(r"([^:]{1,2048}):(\d{1,9}): ?")


class AssertThread(NamedTuple):
    """One thread that failed the assertion."""

    block: Dim3
    thread: Dim3


class DeviceAssert(NamedTuple):
    """One distinct assertion. ``threads`` holds the first :data:`MAX_THREADS` of ``times`` reports."""

    file: str | None
    line: int | None
    function: str | None
    expression: str
    times: int
    threads: tuple[AssertThread, ...]
    process: str | None = None
    pid: int | None = None
    first_line: int | None = None


class _Entry:
    __slots__ = ("first_line", "threads", "times")

    def __init__(self, first_line: int) -> None:
        self.times = 0
        self.first_line = first_line
        self.threads: list[AssertThread] = []


class AssertCollector:
    """Feed it lines; equal assertions of one process are merged. Memory is bounded.

    ``dropped`` counts lines of assertions beyond the first :data:`MAX_ASSERTS` distinct ones.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str | None, int | None], _Entry] = {}
        self.dropped = 0

    def feed(self, line: Line) -> bool:
        """True if ``line`` is a device assertion."""
        if _MARK not in line.text or (place := _PLACE.search(line.text)) is None:
            return False
        key = (line.text[: place.start()], _expression(line.text[place.end() :]), line.process, line.pid)
        entry = self._found.get(key)
        if entry is None:
            if len(self._found) >= MAX_ASSERTS:
                self.dropped += 1
                return True
            entry = self._found[key] = _Entry(line.number)
        entry.times += 1
        if len(entry.threads) < MAX_THREADS:
            x = [int(value) for value in place.groups()]
            entry.threads.append(AssertThread(Dim3(x[0], x[1], x[2]), Dim3(x[3], x[4], x[5])))
        return True

    def result(self) -> tuple[DeviceAssert, ...]:
        """The assertions in the order of their first line."""
        return tuple(_build(key, entry) for key, entry in self._found.items())


def _expression(rest: str) -> str:
    # The CUDA runtime closes with a back-quote; glibc's assert, which looks alike, with an apostrophe.
    end = max(rest.rfind("` failed"), rest.rfind("' failed"))
    return rest[:end] if end >= 0 else rest


def _build(key: tuple[str, str, str | None, int | None], entry: _Entry) -> DeviceAssert:
    head, expression, process, pid = key
    place = _FILE_LINE.match(head)
    return DeviceAssert(
        file=place.group(1) if place else None,
        line=int(place.group(2)) if place else None,
        function=(head[place.end() :] if place else head) or None,
        expression=expression,
        times=entry.times,
        threads=tuple(entry.threads),
        process=process,
        pid=pid,
        first_line=entry.first_line,
    )
