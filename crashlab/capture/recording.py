"""Start the pump for an attempt, hear from it, and see it end."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

SEGMENT_BYTES = 256 << 20
CAP_BYTES = 4 << 30
_PIPE_BYTES = 1 << 20


class Summary(NamedTuple):
    """What the pump says at its end. ``lost`` bytes found no place on disk; ``left_out`` were recorded
    but not shown, since the terminal took nothing."""

    bytes: dict[str, int]
    lost: dict[str, int]
    left_out: int


class Recording:
    """The two pipes of a program and the process that drains them.

    Give ``stdout`` and ``stderr`` (write ends) to the program, then call :meth:`opened`.
    """

    def __init__(
        self,
        folder: str,
        overflow: str,
        attempt: int,
        *,
        sinks: tuple[int, int] = (1, 2),
        segment: int = SEGMENT_BYTES,
        cap: int = CAP_BYTES,
    ) -> None:
        self.summary: Summary | None = None
        self._buffer = b""
        self._gone: list[tuple[str, int | None]] = []
        out_read, self.stdout = _pipe()
        err_read, self.stderr = _pipe()
        self.notify, notify_write = os.pipe()
        os.set_blocking(self.notify, False)
        shown = [_copy(fd) for fd in sinks]
        config = {
            "streams": {
                "stdout": {"source": out_read, "sink": shown[0]},
                "stderr": {"source": err_read, "sink": shown[1]},
            },
            "folder": folder,
            "overflow": overflow,
            "attempt": attempt,
            "segment": segment,
            "cap": cap,
            "notify": notify_write,
        }
        script = os.path.join(os.path.dirname(__file__), "pump.py")
        passed = [fd for fd in (out_read, err_read, notify_write, *shown) if fd >= 0]
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", script, json.dumps(config)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=passed,
                start_new_session=True,
            )
        finally:
            for fd in passed:
                os.close(fd)

    def opened(self) -> None:
        """The program has its ends: close ours, so that the end of its output can be seen."""
        for fd in (self.stdout, self.stderr):
            os.close(fd)

    def drain(self) -> bool:
        """Read the pump's notes; True if there were any."""
        heard = False
        with suppress(BlockingIOError, OSError):
            while piece := os.read(self.notify, 1 << 16):
                heard = True
                self._buffer += piece
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in filter(None, lines):
            raw = json.loads(line)
            if "gone" in raw:
                self._gone.append((raw["gone"], raw["errno"]))
            else:
                self.summary = Summary(raw["bytes"], raw["lost"], raw["left_out"])
        return heard

    def gone(self) -> list[tuple[str, int | None]]:
        """Streams that nobody takes any more, each once with the errno of the write that failed."""
        out, self._gone = self._gone, []
        return out

    def wait(self, seconds: float) -> bool:
        """Whether the pump has ended; it does when the last process closes its output."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        self.drain()
        return True

    def problems(self) -> Iterator[str]:
        """What became of bytes that are not where they belong, as the pump told at its end."""
        if self.summary is not None:
            for name, count in self.summary.lost.items():
                yield f"{count:,} bytes of {name} found no place on disk"
            if left_out := self.summary.left_out:
                yield f"{left_out:,} bytes were recorded but not shown: the terminal took nothing"

    def close(self) -> None:
        """Let go of the pump, whether it has ended or not."""
        os.close(self.notify)


def _copy(fd: int) -> int:
    """A descriptor of our own for a sink; -1 if there is none (closed, or not wanted)."""
    try:
        return os.dup(fd) if fd >= 0 else -1
    except OSError:
        return -1


def _pipe() -> tuple[int, int]:
    read, write = os.pipe()
    with suppress(OSError):  # fewer wake-ups for a program that prints much; a limit may forbid it
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return read, write
