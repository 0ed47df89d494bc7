"""The observers of a running program: when they look, and what they write down."""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import pytest

from crashlab.capture import samples as sampling
from crashlab.capture.dumps import DumpWatch
from crashlab.capture.kmsg import KernelFollower
from crashlab.capture.recording import Recording
from crashlab.capture.samples import LibrarySampler
from crashlab.capture.tree import Change, Proc, ProcessTree
from crashlab.capture.watch import Watch
from crashlab.rundir.reader import open_run
from crashlab.rundir.writer import RunWriter


class SilentRecording:
    """A program that prints nothing."""

    def drain(self) -> bool:
        return False


class OneProcess:
    """A tree of one process that is looked at rarely."""

    def __init__(self) -> None:
        self.known = {os.getpid(): Proc(os.getpid(), 1, 1.0, "python", ("python",))}
        self.reaped: list[tuple[int, int]] = []
        self._next = 0.0

    def due(self, now: float) -> bool:
        return now >= self._next

    def scan(self, now: float) -> Change:
        self._next = now + 60.0
        return Change((), ())

    def open_files(self) -> list[str]:
        return []


def watch(writer: RunWriter, pattern: str | None) -> Watch:
    return Watch(
        writer,
        1,
        cast(Recording, SilentRecording()),
        cast(ProcessTree, OneProcess()),
        DumpWatch(None, "/"),
        LibrarySampler({}),
        "/nonexistent",
        KernelFollower("/nonexistent"),
        listens=(pattern, "/"),
    )


@pytest.fixture
def writer(tmp_path: Path) -> RunWriter:
    return RunWriter.create(str(tmp_path / "run"), ["program"])


def libraries_told(writer: RunWriter) -> int:
    return sum(event.kind == "libraries" for event in open_run(writer.path).events)


def test_a_first_cuda_context_is_the_moment_to_look_at_the_libraries(
    writer: RunWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A program that loads the driver and faults within a second: no look that is due would see it in time.
    paths = ["/usr/lib/libc.so.6"]
    monkeypatch.setattr(sampling, "mapped_files", lambda pid: list(paths))
    seen = watch(writer, writer.file("pipes", "%h.%p"))
    seen.look(0.0)
    paths.append("/usr/lib/libcuda.so.580.159.04")
    seen.look(0.1)
    assert libraries_told(writer) == 0
    os.mkfifo(writer.file("pipes", f"box.{os.getpid()}"))
    seen.look(0.2)
    assert libraries_told(writer) == 1
    paths.append("/usr/lib/libcudnn.so.9.1.0")
    seen.look(0.3)
    assert libraries_told(writer) == 1, "a pipe that was there before is no news"


def test_without_pipes_the_libraries_are_looked_at_when_they_are_due(
    writer: RunWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "mapped_files", lambda pid: ["/usr/lib/libcuda.so.580.159.04"])
    seen = watch(writer, None)
    seen.look(0.0)
    assert libraries_told(writer) == 1


def test_after_its_end_a_long_output_is_searched_within_limits(
    writer: RunWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    from crashlab.capture import watch as watching

    monkeypatch.setattr(watching, "_LAST_BYTES", 1000)
    monkeypatch.setattr(watching, "_READ_ON", 500)
    text = b"y\n" * 20_000 + b"RuntimeError: CUDA error: an illegal memory access was encountered\n"
    Path(writer.file("output", "001.stdout.log")).write_bytes(text)
    hurried = watch(writer, None)
    assert hurried.last_words(seconds=0.0) == len(text) - 1000
    assert [one.kind for one in hurried.live.findings] == ["cuda-error"]
    patient = watch(writer, None)
    assert patient.last_words(seconds=60.0) == 0
    assert patient.live.bytes == len(text)
