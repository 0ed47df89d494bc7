"""What the output says while it comes: is a dump being written, did something fail, does it still move?

Only lines that hold one of a few words are read closely; looking for the words costs a millisecond
for each ten megabytes. The post-mortem reads everything again, thoroughly.
"""

from __future__ import annotations

from typing import NamedTuple

from crashlab.logs.cuda_shapes import classify
from crashlab.logs.driver_facts import DriverLog
from crashlab.logs.driver_log import DriverLogReader
from crashlab.logs.header import split_header
from crashlab.logs.serving_lines import event_of, throughput_of
from crashlab.logs.text import Line, clean, parts

DRIVER, CUDA_ERROR, ENGINE, ASSERT = "driver", "cuda-error", "engine", "device-assert"

_MARKS = (
    b"coredump",
    b"cuda",
    b"CUDA",
    b"NCCL",
    b"Assertion `",
    b"ngine",
    b"Worker",
    b"atchdog",
    b"died",
    b"shared memory broadcast",
    b"illegal memory access",
)
_ENGINE_KINDS = frozenset(
    ("engine-fatal", "engine-died", "start-failed", "rpc-timeout", "watchdog-timeout", "collective-timeout")
)
_HELD = 64 << 10
# Lines that a stalled server goes on printing: they are no progress.
_IDLE_WORDS = (b"/health", b"/metrics", b"shared memory broadcast", b"/v1/models", b"/ping")
_MAX_FINDINGS = 200


class Finding(NamedTuple):
    """A line that tells of a failure. ``kind`` is one of the constants of this module."""

    kind: str
    text: str
    stream: str
    pid: int | None = None


class LiveReader:
    """Feed bytes of both streams; ask for findings, the driver's progress, and signs of life."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.progress = 0
        self.bytes = 0
        self.driver_lines = 0
        self._driver = DriverLogReader()
        self._held: dict[str, bytes] = {}
        self._number = 0
        self._told: set[tuple[str, str]] = set()

    @property
    def dumping(self) -> bool:
        """True from "Starting GPU coredump generation" to "All done" of any process."""
        return self._driver.dumping

    @property
    def driver(self) -> DriverLog:
        """The driver's lines so far."""
        return self._driver.result()

    def feed(self, stream: str, data: bytes) -> list[Finding]:
        """Take new bytes; the new findings in them."""
        self.bytes += len(data)
        data = self._held.pop(stream, b"") + data
        head, newline, rest = data.rpartition(b"\n")
        if len(rest) > _HELD:
            rest = rest[:_HELD]
        if rest:
            self._held[stream] = rest
        if not newline:
            self.progress += b"\r" in data  # a progress bar never ends its line
            return []
        if not any(mark in head for mark in _MARKS):
            self.progress += 1 if _moves(head) else 0
            return []
        before = len(self.findings)
        for raw in head.split(b"\n"):
            if any(mark in raw for mark in _MARKS):
                self._line(stream, raw)
            elif _moves(raw):
                self.progress += 1
        return self.findings[before:]

    def _line(self, stream: str, raw: bytes) -> None:
        for line in parts(clean(raw), 0):
            self._number += 1
            self._read(stream, line._replace(number=self._number))

    def _read(self, stream: str, line: Line) -> None:
        if self._driver.feed(line):
            self.progress += 1
            self.driver_lines += 1
            if "Detected an exception" in line.text:
                self._tell(DRIVER, line, stream)
            elif "Assertion `" in line.text:
                self._tell(ASSERT, line, stream)
            return
        head = split_header(line.text)
        numbers = throughput_of(head.text, line.number, head.time)
        if numbers is not None:
            self.progress += bool(numbers.generation or numbers.prompt or not numbers.running)
            return
        if _moves(line.text.encode("utf-8", "replace")):
            self.progress += 1
        event = event_of(head.text)
        if (event is not None and event.kind in _ENGINE_KINDS) or "EngineDeadError" in head.text:
            self._tell(ENGINE, line, stream)
            return
        error = classify(head.text)
        if error is not None and error.group == "gpu-fault":
            self._tell(CUDA_ERROR, line, stream)

    def _tell(self, kind: str, line: Line, stream: str) -> None:
        text = line.text.strip()[:400]
        if (kind, text) not in self._told and len(self.findings) < _MAX_FINDINGS:
            self._told.add((kind, text))
            self.findings.append(Finding(kind, text, stream, line.pid))


def _moves(text: bytes) -> bool:
    """Whether text is a sign of life: anything but what a stalled server prints, too."""
    return bool(text.strip()) and not any(word in text for word in _IDLE_WORDS)
