"""Runs `crashlab` as a user would, with a time limit, and collects what it left."""

from __future__ import annotations

import contextlib
import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

PROJECT = Path(__file__).resolve().parents[3]
FIXTURE_CORE_LIMIT = 4 << 20


class Wrapped(NamedTuple):
    """One finished (or timed out) run. `left` are processes that outlived it."""

    code: int | None
    seconds: float
    err: str
    folder: Path
    report: dict[str, Any]
    events: list[dict[str, Any]]
    left: list[int]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event.get("event") == kind]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(PROJECT), "CRASHLAB_TRACEBACK": "1"}


def crashlab(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "crashlab", *arguments]


def read_events(folder: Path) -> list[dict[str, Any]]:
    out = []
    with contextlib.suppress(OSError):
        for line in (folder / "events.jsonl").read_bytes().splitlines():
            with contextlib.suppress(ValueError):
                out.append(json.loads(line))
    return out


def wrap(
    folder: Path,
    options: list[str],
    command: list[str],
    seconds: float,
    meanwhile: Callable[[subprocess.Popen[bytes], Path], None] | None = None,
    cwd: Path | None = None,
) -> Wrapped:
    """`crashlab run --out FOLDER OPTIONS -- COMMAND`. `meanwhile` acts on the running wrapper."""
    log = folder.parent / f"{folder.name}.stderr"
    started = time.monotonic()
    with open(log, "wb") as err, open(os.devnull, "wb") as out:
        process = subprocess.Popen(
            crashlab("run", "--out", str(folder), *options, "--", *command),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=environment(),
            start_new_session=True,
            cwd=cwd,
        )
        if meanwhile is not None:
            meanwhile(process, folder)
        try:
            code: int | None = process.wait(max(1.0, seconds - (time.monotonic() - started)))
        except subprocess.TimeoutExpired:
            code = None
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    left = processes_of(folder)
    for pid in left:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    report: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):
        report = json.loads((folder / "report.json").read_text())
    text = log.read_bytes()[-20000:].decode("utf-8", "replace")
    return Wrapped(code, time.monotonic() - started, text, folder, report, read_events(folder), left)


def processes_of(folder: Path) -> list[int]:
    """Living processes that still carry the run's environment or name it as an argument."""
    mark, out = str(folder).encode(), []
    for name in os.listdir("/proc"):
        if not name.isdecimal() or int(name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            base = Path("/proc") / name
            text = (base / "environ").read_bytes() + (base / "cmdline").read_bytes()
            state = (base / "stat").read_text().rpartition(")")[2].split()[0]
            if mark in text and state != "Z":
                out.append(int(name))
    return out


def wait_for_event(folder: Path, kind: str, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if any(event.get("event") == kind for event in read_events(folder)):
            return True
        time.sleep(0.01)
    return False


def keep_fixture(wrapped: Wrapped, place: Path) -> None:
    """A copy of the run directory that is small enough for a test: light dumps compressed, large ones left out."""
    if not wrapped.folder.is_dir():
        return
    target = place / wrapped.folder.name
    shutil.copytree(
        wrapped.folder,
        target,
        ignore=shutil.ignore_patterns("cores", "pipes", ".reserve"),
        dirs_exist_ok=True,
    )
    shutil.copyfile(wrapped.folder.parent / f"{wrapped.folder.name}.stderr", target / "terminal.txt")
    (target / "cores").mkdir(exist_ok=True)
    cores = sorted((wrapped.folder / "cores").glob("*")) if (wrapped.folder / "cores").is_dir() else []
    for core in cores:
        if core.stat().st_size <= FIXTURE_CORE_LIMIT:
            (target / "cores" / f"{core.name}.xz").write_bytes(lzma.compress(core.read_bytes(), preset=6))
