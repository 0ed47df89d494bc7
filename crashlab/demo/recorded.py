"""What was recorded and ships with the package: a GPU fault and a hang of an H200, and vLLM 0.25.1's words.

The dumps come from a CUDA C program of this project (``scripts/gpu``), the log lines from vLLM under
load on the same machine. They are replayed together: the story is put together, each piece is real.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from importlib import resources

FAULT, STALL = "fault", "stall"


def text(name: str) -> str:
    """A recorded text: startup, traceback, engine-dead, fault-driver, stall-driver."""
    return _data(f"{name}.txt").decode("utf-8")


def dump(name: str) -> bytes:
    """A recorded dump, unpacked: fault or stall."""
    import lzma

    return lzma.decompress(_data(f"{name}.core.xz"))


def _data(file: str) -> bytes:
    return (resources.files("crashlab.demo") / "data" / file).read_bytes()


def log_lines(name: str, pids: dict[str, int]) -> Iterator[str]:
    """Recorded lines as vLLM prints them: ``(EngineCore pid=N) INFO 11-30 01:02:03 [file.py:1] …``."""
    for line in text(name).splitlines():
        process, _, rest = line.partition("|")
        level, _, words = rest.partition("|")
        when = time.strftime("%m-%d %H:%M:%S")
        yield f"({process} pid={pids.get(process, 0)}) {level} {when} {words}"


def driver_lines(name: str, file: str) -> Iterator[str]:
    """The driver's recorded progress lines, with today's times and this dump's file."""
    for line in text(f"{name}-driver").splitlines():
        now = time.time()
        stamp = f"{time.strftime('%H:%M:%S', time.localtime(now))}.{int(now * 1e6) % 1_000_000:06d}"
        yield f"[{stamp}] {line.replace('{file}', file).replace('{cwd}', os.getcwd())}"


def expand(pattern: str) -> str:
    """A CUDA_COREDUMP_FILE or CUDA_COREDUMP_PIPE value as the driver expands it."""
    import socket

    values = {"%h": socket.gethostname(), "%p": str(os.getpid()), "%t": str(int(time.time()))}
    for mark, value in values.items():
        pattern = pattern.replace(mark, value)
    return pattern
