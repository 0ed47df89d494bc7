"""Asks a process for a GPU core dump through its pipe."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

# The driver's reader wakes up at any write, but small ones have been lost: write at least this much.
ENOUGH = 1 << 20


def ask_for_dump(pipe: Path, seconds: float = 10) -> str:
    """Writes into the pipe, never waiting longer than `seconds`. Says in a few words what happened."""
    try:
        descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        return (
            "nobody reads the pipe"
            if error.errno == errno.ENXIO
            else f"the pipe cannot be opened: {error.strerror}"
        )
    written, deadline = 0, time.monotonic() + seconds
    try:
        while written < ENOUGH and time.monotonic() < deadline:
            try:
                written += os.write(descriptor, b"\0" * min(65536, ENOUGH - written))
            except BlockingIOError:
                time.sleep(0.01)
            except BrokenPipeError:
                break
    finally:
        os.close(descriptor)
    return f"{written} bytes written"
