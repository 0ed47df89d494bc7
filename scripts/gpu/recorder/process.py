"""Runs one scene: drains its output, asks for a dump where it hangs, ends it in every case."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, NamedTuple

from .scenes import Scene
from .trigger import ask_for_dump

SETTLE = 1.5  # seconds between READY and the trigger: let every warp reach its waiting place
NCCL_SETTLE = 9.0  # the other rank has to fault and dump first
GRACE = 20.0  # seconds a dump may take once it has begun; a full dump gets three times that
SILENCE = 8.0  # seconds without a word from the driver after a dump was asked for


class Run(NamedTuple):
    exit_code: int | None  # None: it could not be reaped
    seconds: float
    triggered: list[str]  # what each attempt to ask for a dump said
    killed: bool
    stdout: str
    stderr: str


class _Watch:
    """Collects a stream's text in a thread and remembers when words were first seen."""

    def __init__(self, stream: IO[bytes], words: tuple[str, ...]) -> None:
        self.lines: list[str] = []
        self.seen: dict[str, float] = {}
        self._words = words
        self._stream = stream
        self.thread = threading.Thread(target=self._drain, daemon=True)
        self.thread.start()

    def _drain(self) -> None:
        for raw in self._stream:
            line = raw.decode(errors="replace")
            if len(self.lines) < 20_000:
                self.lines.append(line)
            for word in self._words:
                if word in line:
                    self.seen.setdefault(word, time.monotonic())

    def text(self) -> str:
        self.thread.join(timeout=2)
        return "".join(self.lines)


def kill(process: subprocess.Popen[bytes]) -> int | None:
    """Ends the process and its group; its exit code, None if it could not be reaped."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    try:
        return process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        return None  # uninterruptible in the driver: report it, do not wait for it


def _trigger_all(folder: Path) -> list[str]:
    pipes = sorted(folder.glob("*.pipe"))
    return [f"{pipe.name}: {ask_for_dump(pipe)}" for pipe in pipes] or ["no pipe was made"]


class _Session:
    def __init__(self, scene: Scene, process: subprocess.Popen[bytes], folder: Path) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self.scene, self.process, self.folder = scene, process, folder
        self.started = time.monotonic()
        self.out = _Watch(process.stdout, ("READY",))
        self.err = _Watch(process.stderr, ("coredump: ", "Writing out global memory", "All done"))
        self.triggered: list[str] = []
        self.trigger_time: float | None = None

    def step(self) -> bool:
        """One look; True when the process must be killed now."""
        now, scene = time.monotonic(), self.scene
        if scene.cut and "Writing out global memory" in self.err.seen:
            return self._has_bytes()
        ready = self.out.seen.get("READY")
        settle = NCCL_SETTLE if scene.program == "torch" and scene.gpus > 1 else SETTLE
        dumping = self.err.seen.get("coredump: ")
        due = scene.hang and ready is not None and now - ready > settle
        late = now - self.started > scene.timeout and dumping is None
        if (due or late) and self.trigger_time is None:
            self.trigger_time = now
            self.triggered = _trigger_all(self.folder)
        if dumping is None:
            return self.trigger_time is not None and now - self.trigger_time > SILENCE
        grace = GRACE * (3 if scene.dump == "full" else 1)
        return now - max(dumping, self.trigger_time or 0.0) > grace

    def _has_bytes(self) -> bool:
        return any(path.stat().st_size > 2**20 for path in self.folder.glob("*.nvcudmp"))


def launch(argv: list[str], environment: dict[str, str], folder: Path) -> subprocess.Popen[bytes]:
    """Starts `argv` in `folder`, as the leader of a process group of its own."""
    return subprocess.Popen(
        argv,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def watch(scene: Scene, process: subprocess.Popen[bytes], folder: Path, stop: Callable[[], bool]) -> Run:
    """Waits until the process ends, is killed at its limit, or `stop()` says so."""
    session = _Session(scene, process, folder)
    killed = False
    while process.poll() is None:
        if session.step() or stop():
            killed = True
            break
        time.sleep(0.005 if scene.cut else 0.05)
    exit_code = kill(process)  # also ends children that outlived it
    seconds = time.monotonic() - session.started
    return Run(exit_code, seconds, session.triggered, killed, session.out.text(), session.err.text())
