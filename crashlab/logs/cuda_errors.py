"""CUDA, torch, NCCL and library error lines as typed events, with the site that each one blames.

An event is a report, not a cause: ``victim`` marks the sites that only pass on an earlier fault.
Shapes seen: torch 2.x (``torch.AcceleratorError: CUDA error: …`` since 2.8, ``Search for
`cudaError…'`` since 2.9), the NCCL watchdog, vLLM's custom all-reduce check, Triton, cuBLAS and cuDNN
status codes, llama.cpp, and the ``CUDA error at FILE:LINE`` of many C programs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from crashlab.facts import HostReported
from crashlab.logs.asserts import AssertCollector, DeviceAssert
from crashlab.logs.cuda_shapes import classify, is_advice
from crashlab.logs.header import Header, split_header
from crashlab.logs.lazy import Lazy
from crashlab.logs.text import Line, read_lines
from crashlab.logs.tracebacks import Frame, Traceback, TracebackCollector
from crashlab.logs.victims import VictimSite, victim_site

MAX_EVENTS = 512
_MAX_STREAMS = 64

_GATE = Lazy(
    r"CUDA|[Cc]uda|NCCL|nccl|CUBLAS|CUDNN|Triton Error|illegal memory access|launch failure|Traceback"
    r"|Watchdog"
)
_ASYNC = "errors might be asynchronously reported"
_SEARCH = Lazy(r"Search for `(cudaError[A-Za-z]{1,60})'")
_CXX = Lazy(r"([\w./+-]{1,512}\.(?:cu|cuh|cpp|cc|cxx|c|h|hpp|inl)):(\d{1,9})")
_LLAMA = Lazy(r"\s{0,8}current device: -?\d{1,6}, in function (\S{1,256}) at ([^:]{1,512}):(\d{1,9})")


class CudaErrorEvent(NamedTuple):
    """One reported error. ``group`` as in :mod:`crashlab.logs.cuda_names`, or ``library``.

    ``site`` is the innermost Python frame or the C++ place, ``blamed`` the innermost frame outside
    torch and the standard library, which a reader of the traceback blames. ``asynchronous`` is True
    when the report itself says that its stack may be wrong. ``times`` counts equal reports.
    """

    name: str | None
    group: str
    message: str
    source: str
    line: int
    time: str | None = None
    process: str | None = None
    pid: int | None = None
    rank: int | None = None
    exception: str | None = None
    site: Frame | None = None
    blamed: Frame | None = None
    victim: VictimSite | None = None
    asynchronous: bool = False
    times: int = 1

    @property
    def is_gpu_fault(self) -> bool:
        """True for errors that a kernel on the GPU caused."""
        return self.group == "gpu-fault"


class CudaErrors(NamedTuple):
    """Everything of this kind in a log, in the order of first lines."""

    events: tuple[CudaErrorEvent, ...] = ()
    asserts: tuple[DeviceAssert, ...] = ()
    tracebacks: tuple[Traceback, ...] = ()
    dropped: int = 0

    @property
    def first_fault(self) -> CudaErrorEvent | None:
        """The earliest report of a GPU fault."""
        return next((event for event in self.events if event.is_gpu_fault), None)

    @property
    def believed(self) -> CudaErrorEvent | None:
        """The report that a reader of the log would believe: the first GPU fault with a site, else the
        first GPU fault, else the first error of another class."""
        faults = [event for event in self.events if event.is_gpu_fault]
        with_site = next((event for event in faults if event.blamed is not None), None)
        return with_site or next(iter(faults or self.events), None)


_Key = tuple[object, ...]


class CudaErrorReader:
    """Feed lines; :meth:`result` ends the reading. Memory is bounded."""

    def __init__(self) -> None:
        self._tracebacks = TracebackCollector()
        self._asserts = AssertCollector()
        self._events: dict[_Key, CudaErrorEvent] = {}
        # The report that further lines may complete: by process, and the line just before.
        self._last: dict[tuple[str | None, int | None], _Key] = {}
        self._previous: tuple[int, _Key] | None = None
        self._dropped = 0

    def feed(self, line: Line, header: Header | None = None) -> bool:
        """Read one line; True if it was used. ``header`` may be given if it was split off already."""
        if self._asserts.feed(line):
            return True
        if not self._tracebacks.active and not self._last and not _GATE.search(line.text):
            return False
        head = header if header is not None else split_header(line.text)
        if self._tracebacks.feed(line, head):
            return True
        if self._follow_up(line, head):
            return True
        self._last.pop((line.process, line.pid), None)
        return _GATE.search(head.text) is not None and self._report(line, head)

    def result(self) -> CudaErrors:
        """All events, those of tracebacks included."""
        tracebacks = self._tracebacks.result()
        events = dict(self._events)
        for one in tracebacks:
            event = _from_traceback(one)
            if event is not None:
                _merge(events, event, one.times)
        ordered = sorted(events.values(), key=lambda event: event.line)
        dropped = self._dropped + self._asserts.dropped + self._tracebacks.dropped
        return CudaErrors(tuple(ordered), self._asserts.result(), tracebacks, dropped)

    def _report(self, line: Line, head: Header) -> bool:
        found = classify(head.text)
        if found is None:
            return False
        place = _CXX.search(head.text) or (_CXX.match(head.site) if head.site else None)
        site = Frame(place.group(1), int(place.group(2))) if place else None
        event = CudaErrorEvent(
            name=found.error.name if found.error else None,
            group=found.group,
            message=found.message,
            source=found.source,
            line=line.number,
            time=head.time or line.stamp,
            process=line.process,
            pid=line.pid,
            rank=line.rank if line.rank is not None else head.rank,
            site=site,
            blamed=site,
            victim=victim_site(head.text, head.site),
        )
        key = _key(event)
        if key not in self._events and len(self._events) >= MAX_EVENTS:
            self._dropped += 1
            return True
        _merge(self._events, event, 1)
        self._last[line.process, line.pid] = key
        self._previous = (line.number, key)
        if len(self._last) > _MAX_STREAMS:
            self._last.pop(next(iter(self._last)))
        return True

    def _follow_up(self, line: Line, head: Header) -> bool:
        """A line that completes the report just made by this process, or on the line before."""
        key = self._last.get((line.process, line.pid))
        if key is None and self._previous is not None and self._previous[0] == line.number - 1:
            key = self._previous[1]
        if key is None:
            return False
        event = self._events[key]
        done = _complete(event, head.text)
        if done is None:
            return False
        self._events[key] = done
        self._previous = (line.number, key)
        return True


def _complete(event: CudaErrorEvent, text: str) -> CudaErrorEvent | None:
    """``event`` with what a line below it adds, or None if the line is something else."""
    if _ASYNC in text:
        return event._replace(asynchronous=True)
    if found := _SEARCH.search(text):
        return event._replace(name=event.name or found.group(1))
    if found := _LLAMA.match(text):
        frame = Frame(found.group(2), int(found.group(3)), found.group(1))
        victim = victim_site(found.group(1)) or event.victim
        return event._replace(source="llama.cpp", site=frame, blamed=frame, victim=victim)
    if event.source == "llama.cpp" and event.site and event.site.code is None and text.startswith("  "):
        frame = event.site._replace(code=text.strip()[:512])
        return event._replace(site=frame, blamed=frame, victim=victim_site(frame.code) or event.victim)
    return event if is_advice(text) else None


def _from_traceback(one: Traceback) -> CudaErrorEvent | None:
    first = (one.message or "").split("\n", 1)[0]
    found = classify(first) if first else None
    if found is None:
        return None
    site = one.innermost
    # Wrappers inside torch hide the line of the program that a reader sees blamed.
    blamed = next((f for f in reversed(one.frames) if not is_library(f)), site)
    hidden = first if found.source != "cuda" else None
    victim = victim_site(hidden, *(text for f in (site, blamed) if f for text in (f.code, f.function)))
    torch = found.source == "cuda" and (one.exception or "").startswith(("torch.", "RuntimeError"))
    search = _SEARCH.search(one.message or "")
    return CudaErrorEvent(
        name=found.error.name if found.error else search.group(1) if search else None,
        group=found.group,
        message=found.message,
        source="torch" if torch else found.source,
        line=one.first_line,
        time=one.time,
        process=one.process,
        pid=one.pid,
        rank=one.rank,
        exception=one.exception,
        site=site,
        blamed=blamed,
        victim=victim,
        asynchronous=_ASYNC in (one.message or ""),
    )


def is_library(frame: Frame) -> bool:
    """True for frames of torch and of Python's own library: nobody blames those."""
    return "/torch/" in frame.file or ("/lib/python3" in frame.file and "-packages/" not in frame.file)


def reported(event: CudaErrorEvent) -> HostReported:
    """The event as the fact that a report shows.

    ``kernel_blamed`` is the blamed frame's function, unless the frame only waits or copies.
    """
    frame = event.blamed
    where = None
    if frame is not None:
        where = f"{frame.file}:{frame.line}" + (f" in {frame.function}" if frame.function else "")
        where += f": {frame.code}" if frame.code else ""
    text = f"{event.exception}: {event.message}" if event.exception else event.message
    blamed = frame.function if frame is not None and event.victim is None else None
    return HostReported(text, blamed, where)


def _key(event: CudaErrorEvent) -> _Key:
    return (event.name, event.message, event.source, event.site, event.process, event.pid, event.rank)


def _merge(events: dict[_Key, CudaErrorEvent], event: CudaErrorEvent, times: int) -> None:
    key = _key(event)
    earlier = events.get(key, event._replace(times=0))
    events[key] = earlier._replace(times=earlier.times + times)


def read_cuda_errors(source: Iterable[bytes | str] | bytes | str) -> CudaErrors:
    """Parse a whole text, or the lines of one. Raises nothing, whatever the bytes."""
    reader = CudaErrorReader()
    for line in read_lines(source):
        reader.feed(line)
    return reader.result()
