"""What evidence is in a text file, so that one ``--log FILE`` takes any of them, or a mixture.

A server log can hold driver lines, a pasted issue a kernel log and a debugger transcript: each line
goes to the readers it may concern, in one pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from crashlab.logs.cuda_errors import CudaErrors
from crashlab.logs.driver_facts import DriverLog
from crashlab.logs.kernel_log import KernelLog, KernelLogReader
from crashlab.logs.probe import ProbeReader, ProbeStory
from crashlab.logs.sanitizer import MARK as SANITIZER_MARK
from crashlab.logs.sanitizer import SanitizerLog, SanitizerReader
from crashlab.logs.serving import ServingReader
from crashlab.logs.serving_facts import ServingStory
from crashlab.logs.text import Line, read_file, read_lines

DRIVER = "driver-log"
CUDA_ERRORS = "cuda-errors"
SERVER = "server-log"
KERNEL = "kernel-log"
SANITIZER = "sanitizer"
METRICS = "metrics"
TRANSCRIPT = "transcript"

_TRANSCRIPT = (
    "Opening GPU coredump:",
    "CUDA Exception:",
    "(cuda-gdb)",
    "focus set to CUDA kernel",
    "Switching focus to CUDA kernel",
    "received signal CUDA_EXCEPTION",
)


class Evidence(NamedTuple):
    """Everything that a text holds. ``kinds`` names the parts that are not empty.

    ``damage`` says what of a compressed file could not be read. A ``transcript`` is only recognised
    here; the debugger's own parser reads it.
    """

    kinds: frozenset[str]
    driver: DriverLog = DriverLog()
    errors: CudaErrors = CudaErrors()
    story: ServingStory | None = None
    kernel: KernelLog = KernelLog()
    sanitizer: SanitizerLog = SanitizerLog()
    probe: ProbeStory | None = None
    lines: int = 0
    damage: str | None = None


class EvidenceReader:
    """Feed every line of a text; :meth:`result` ends the reading. Memory is bounded."""

    def __init__(self) -> None:
        self._serving = ServingReader()
        self._kernel = KernelLogReader()
        self._sanitizer = SanitizerReader()
        self._probe = ProbeReader()
        self._transcript = False
        self._lines = 0

    @property
    def dumping(self) -> bool:
        """True while the driver writes a dump: nothing may be killed now."""
        return self._serving.dumping

    def feed(self, line: Line) -> None:
        """Give one line to the readers it may concern."""
        self._lines = line.number
        if line.text.startswith(SANITIZER_MARK):
            self._sanitizer.feed(line)
        elif self._kernel.feed(line) or self._probe.feed(line):
            return
        else:
            if not self._transcript and ("CUDA" in line.text or "GPU" in line.text or "gdb" in line.text):
                self._transcript = any(mark in line.text for mark in _TRANSCRIPT)
            self._serving.feed(line)

    def result(self) -> Evidence:
        """What was found."""
        story = self._serving.result()
        kernel, sanitizer, probe = self._kernel.result(), self._sanitizer.result(), self._probe.result()
        found = {
            DRIVER: bool(story.driver.dumps or story.driver.asserts or story.driver.problems),
            CUDA_ERRORS: bool(story.errors.events),
            SERVER: story.server is not None or bool(story.throughput) or story.ready is not None,
            KERNEL: bool(kernel.xids or kernel.killed or kernel.driver),
            SANITIZER: bool(sanitizer.faults) or sanitizer.total is not None,
            METRICS: probe is not None,
            TRANSCRIPT: self._transcript,
        }
        kinds = frozenset(kind for kind, present in found.items() if present)
        return Evidence(
            kinds,
            story.driver,
            story.errors,
            story if SERVER in kinds else None,
            kernel,
            sanitizer,
            probe,
            self._lines,
        )


def read_evidence(source: Iterable[bytes | str] | bytes | str) -> Evidence:
    """Read a whole text, or the lines of one. Raises nothing, whatever the bytes."""
    reader = EvidenceReader()
    for line in read_lines(source):
        reader.feed(line)
    return reader.result()


def read_evidence_file(path: str) -> Evidence:
    """Read a file of any size. Raises UnreadableInput if it cannot be opened or read."""
    reader = EvidenceReader()
    damage: list[str] = []
    for line in read_file(path, damage.append):
        reader.feed(line)
    return reader.result()._replace(damage=damage[0] if damage else None)


def detect(source: Iterable[bytes | str] | bytes | str) -> frozenset[str]:
    """Only the kinds of evidence in a text."""
    return read_evidence(source).kinds
