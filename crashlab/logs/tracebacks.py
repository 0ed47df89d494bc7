"""Python tracebacks put together again, line by line, across prefixes and interleaved processes.

A server prints each line of a traceback with its own prefix and header, several processes at once,
and the same one for every client. Lines of one (process, rank, logger call site) belong together;
equal tracebacks are counted. Memory is bounded.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from crashlab.logs.header import Header
from crashlab.logs.lazy import Lazy
from crashlab.logs.text import Line

MAX_FRAMES = 64
MAX_TRACEBACKS = 256
MAX_MESSAGE_LINES = 16
_MAX_OPEN = 64

START = "Traceback (most recent call last)"
_FRAME = Lazy(r'\s{0,64}File "([^"]{1,4096})", line (\d{1,9})(?:, in (.{0,512}))?')
_RAISED = Lazy(r"([A-Za-z_][\w.]{0,255})(?:: (.*))?$", re.DOTALL)
# Where each line carries a header, only known continuations can be told from the next message.
_CONTINUES = (
    " ",
    "\t",
    "Search for `cuda",
    "CUDA kernel errors might",
    "For debugging consider",
    "Compile with `TORCH_USE_CUDA_DSA",
    "Device-side assertion",
    "Last error:",
    "GPU ",
)


class Frame(NamedTuple):
    """One Python frame; ``code`` is its source line when printed."""

    file: str
    line: int
    function: str | None = None
    code: str | None = None


class Traceback(NamedTuple):
    """One traceback, innermost frame last. ``times`` counts equal ones.

    ``frames`` keeps the outermost few and the innermost ones of a very deep stack.
    """

    exception: str | None
    message: str | None
    frames: tuple[Frame, ...]
    first_line: int
    last_line: int
    time: str | None = None
    process: str | None = None
    pid: int | None = None
    rank: int | None = None
    times: int = 1

    @property
    def innermost(self) -> Frame | None:
        """The frame that raised."""
        return self.frames[-1] if self.frames else None


_Stream = tuple["str | None", "int | None", "int | None", "str | None"]


def _stream_of(line: Line, header: Header) -> _Stream:
    """What tells two interleaved writers apart: process, pid, rank, logger call site.

    A rank inside the logger's header is left out: SGLang prints it on the first line only.
    """
    return (line.process, line.pid, line.rank, header.site)


class _Open:
    """A traceback whose lines are still arriving."""

    def __init__(self, line: Line, header: Header) -> None:
        self.first_line = self.last_line = line.number
        self.time = header.time or line.stamp
        self.rank = line.rank if line.rank is not None else header.rank
        self.frames: list[Frame] = []
        self.exception: str | None = None
        self.message: list[str] = []

    def take(self, text: str) -> bool:
        """One more line; False if it does not belong to the traceback."""
        if self.exception is not None:
            return self._message(text)
        if found := _FRAME.match(text):
            self.frames.append(Frame(found.group(1), int(found.group(2)), found.group(3)))
            if len(self.frames) > MAX_FRAMES:
                del self.frames[MAX_FRAMES // 4]
            return True
        if not text.strip():
            return not self.frames
        if text.startswith("  "):
            self._code(text.strip())
            return True
        if raised := _RAISED.match(text):
            self.exception = raised.group(1)
            if raised.group(2):
                self.message.append(raised.group(2)[:4096])
            return True
        return False

    def _code(self, text: str) -> None:
        if self.frames and self.frames[-1].code is None and set(text) - set("^~ "):
            self.frames[-1] = self.frames[-1]._replace(code=text[:512])

    def _message(self, text: str) -> bool:
        if len(self.message) >= MAX_MESSAGE_LINES or not text.startswith(_CONTINUES) or not text.strip():
            return False
        self.message.append(text[:4096])
        return True


class TracebackCollector:
    """Feed it every line; :meth:`feed` says whether the line was part of a traceback."""

    def __init__(self) -> None:
        self._open: dict[_Stream, _Open] = {}
        self._done: dict[tuple[object, ...], Traceback] = {}
        self.dropped = 0

    @property
    def active(self) -> bool:
        """True while some traceback is unfinished."""
        return bool(self._open)

    def feed(self, line: Line, header: Header) -> bool:
        """Take one line, its header already split off."""
        stream = _stream_of(line, header)
        opened = self._open.get(stream)
        if header.text.rstrip(" :").endswith(START):
            if opened is not None:
                self._close(stream)
            if len(self._open) >= _MAX_OPEN:
                self._close(next(iter(self._open)))
            self._open[stream] = _Open(line, header)
            return True
        if opened is None:
            return False
        # A bare level or time (uvicorn, SGLang) starts a new message; a site marks the same logger call.
        new_message = header.site is None and (header.level is not None or header.time is not None)
        if not new_message and opened.take(header.text):
            opened.last_line = line.number
            return True
        self._close(stream)
        return False

    def result(self) -> tuple[Traceback, ...]:
        """All tracebacks by their first line; unfinished ones as far as they came."""
        for stream in list(self._open):
            self._close(stream)
        return tuple(sorted(self._done.values(), key=lambda one: one.first_line))

    def _close(self, stream: _Stream) -> None:
        opened = self._open.pop(stream)
        built = Traceback(
            opened.exception,
            "\n".join(opened.message) or None,
            tuple(opened.frames),
            opened.first_line,
            opened.last_line,
            opened.time,
            stream[0],
            stream[1],
            opened.rank,
        )
        # A re-raised exception drags a longer stack each time: the innermost frame tells them apart.
        key = (built.exception, built.message, built.innermost, *stream[:3], opened.rank)
        earlier = self._done.get(key)
        if earlier is not None:
            self._done[key] = earlier._replace(times=earlier.times + 1)
        elif len(self._done) < MAX_TRACEBACKS:
            self._done[key] = built
        else:
            self.dropped += 1
