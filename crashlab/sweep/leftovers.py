"""Processes of a run whose sweep is gone: found by the mark in their environment, waited for or ended."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from crashlab.sweep.job import TOKEN

_GRACE = 15.0


def marked(token: str) -> list[int]:
    """Processes that carry a run's mark, without this one."""
    wanted = f"{TOKEN}={token}".encode()
    out = []
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    for name in names:
        if not name.isdecimal() or int(name) == os.getpid():
            continue
        with suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
            if wanted in file.read().split(b"\0") and not _zombie(int(name)):
                out.append(int(name))
    return sorted(out)


def supervisor_of(pids: list[int]) -> int | None:
    """Which of them is the crashlab that supervises the run, if it still lives."""
    for pid in pids:
        with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
            if words[1:3] == [b"-m", b"crashlab"] and words[3:4] in ([b"soak"], [b"run"]):
                return pid
    return None


def end(token: str, grace: float = _GRACE) -> list[int]:
    """Ask the processes of a run to end, then kill them; those that are still there."""
    for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, 5.0)):
        pids = marked(token)
        for pid in pids:
            with suppress(OSError):
                os.kill(pid, number)
        until = time.monotonic() + seconds
        while (pids := marked(token)) and time.monotonic() < until:
            time.sleep(0.1)
        if not pids:
            return []
    return marked(token)


def _zombie(pid: int) -> bool:
    with suppress(OSError), open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[:1] == ["Z"]
    return True
