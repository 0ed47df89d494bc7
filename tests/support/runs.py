"""Run ``crashlab run`` as a user does, in a process of its own, around the fake program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = str(Path(__file__).with_name("fakeprogram.py"))


class Ran(NamedTuple):
    """What a finished run left."""

    code: int
    out: bytes
    err: str
    folder: Path

    @property
    def events(self) -> list[dict[str, Any]]:
        return read_events(self.folder)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["event"] == kind]

    @property
    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "report.json").read_text())
        return found


def read_events(folder: Path) -> list[dict[str, Any]]:
    out = []
    for line in (folder / "events.jsonl").read_bytes().splitlines():
        try:
            out.append(json.loads(line))
        except ValueError:
            continue
    return out


def fake(*steps: str) -> list[str]:
    """The command line of the fake program."""
    return [sys.executable, "-S", PROGRAM, *steps]


def environment() -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA_", "PYTHONFAULT"))}
    env["PYTHONPATH"] = str(ROOT)
    env["CRASHLAB_TRACEBACK"] = "1"
    return env


def start(folder: Path, options: list[str], command: list[str], **variables: str) -> subprocess.Popen[bytes]:
    """``crashlab run --out FOLDER OPTIONS -- COMMAND`` in the background."""
    return subprocess.Popen(
        [sys.executable, "-m", "crashlab", "run", "--out", str(folder), "--fast", *options, "--", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**environment(), **variables},
        start_new_session=True,
        cwd=folder.parent,
    )


def finish(process: subprocess.Popen[bytes], folder: Path, seconds: float = 60) -> Ran:
    """Wait for it; a run that does not end is a failed test."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return Ran(process.returncode, out, err.decode("utf-8", "replace"), folder)


def run(
    folder: Path, *steps: str, options: list[str] | None = None, seconds: float = 60, **variables: str
) -> Ran:
    """The same, to the end."""
    return finish(start(folder, options or [], fake(*steps), **variables), folder, seconds)


def wait_until(what: Callable[[], object], seconds: float = 60.0) -> None:
    """Until ``what()`` is true: on a loaded machine nothing has happened merely because time has passed."""
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s")
        time.sleep(0.02)


def wait_gone(mark: str, seconds: float = 30.0) -> None:
    """Until no process with ``mark`` in its command line is left."""
    try:
        wait_until(lambda: not processes_with(mark), seconds)
    except AssertionError:
        raise AssertionError(f"still there: {processes_with(mark)}") from None


def wait_for_output(folder: Path, words: bytes, stream: str = "stdout") -> None:
    """Until the program has printed ``words``."""
    log = folder / "output" / f"001.{stream}.log"
    wait_until(lambda: log.exists() and words in log.read_bytes())


def processes_with(mark: str) -> list[int]:
    """Processes whose command line holds ``mark``."""
    out = []
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != os.getpid():
            try:
                text = Path(f"/proc/{name}/cmdline").read_bytes()
                state = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if mark.encode() in text and state != "Z":
                out.append(int(name))
    return out
