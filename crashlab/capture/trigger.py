"""Ask hung processes for a GPU core dump through their pipes (CUDA_COREDUMP_PIPE)."""

from __future__ import annotations

import errno
import os
import stat
import time
from contextlib import suppress
from typing import NamedTuple

from crashlab.capture.dumps import name_pattern

ENOUGH = 1 << 20
"""The driver's reader wakes up at any write, but small ones have been lost (driver 580)."""


class Asked(NamedTuple):
    """One attempt. ``ok`` when the driver took the bytes; ``what`` says what happened."""

    pipe: str
    pid: int | None
    ok: bool
    what: str


def pipes(pattern: str | None, cwd: str) -> list[tuple[str, int | None]]:
    """The pipes that the driver made so far, with the process that owns each."""
    if not pattern:
        return []
    folder, _, name = os.path.join(cwd, pattern).rpartition("/")
    matcher = name_pattern(name)
    out: list[tuple[str, int | None]] = []
    with suppress(OSError):
        for entry in sorted(os.listdir(folder or "/")):
            if found := matcher.fullmatch(entry):
                pid = found.groupdict().get("pid")
                out.append((os.path.join(folder or "/", entry), int(pid) if pid else None))
    return out


def ask(pipe: str, pid: int | None, seconds: float = 10.0) -> Asked:
    """Write into one pipe, waiting at most ``seconds``. The process aborts after its dump."""
    try:
        descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        nobody = error.errno == errno.ENXIO
        return Asked(pipe, pid, False, "nobody reads the pipe" if nobody else str(error.strerror))
    if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        # The user's own CUDA_COREDUMP_PIPE may lie where others write: their file would be overwritten.
        os.close(descriptor)
        return Asked(pipe, pid, False, "it is no pipe")
    written, deadline = 0, time.monotonic() + seconds
    what = "the driver did not take the request in time"
    try:
        while written < ENOUGH and time.monotonic() < deadline:
            try:
                written += os.write(descriptor, b"\0" * min(1 << 16, ENOUGH - written))
            except BlockingIOError:
                time.sleep(0.01)
            except OSError as error:
                what = f"the pipe was closed ({error.strerror})"
                break
    finally:
        os.close(descriptor)
    # The driver may stop reading after the first bytes and dump all the same.
    return Asked(pipe, pid, written > 0, f"{written:,} bytes written" if written else what)
