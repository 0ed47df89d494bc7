"""Follow the kernel log: the driver's Xid lines, and processes that the kernel itself ended."""

from __future__ import annotations

import os

from crashlab.logs.kernel_log import KernelLogReader
from crashlab.logs.text import split_prefix

_RECORD = 8192
_MOST = 10_000
_WORDS = ("NVRM", "Xid", "Out of memory", "segfault", "oom-kill", "nvidia")


class KernelFollower:
    """New records of ``/dev/kmsg`` since it was opened. ``why_not`` says why it cannot be read."""

    def __init__(self, path: str = "/dev/kmsg") -> None:
        self.why_not: str | None = None
        self.reader = KernelLogReader()
        self._lines = 0
        self._file = -1
        try:
            self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            if not os.path.isfile(path):
                os.lseek(self._file, 0, os.SEEK_END)
        except OSError as error:
            self.why_not = error.strerror
            self.close()

    def read(self) -> list[str]:
        """Lines that concern GPUs or killed processes, as dmesg prints them."""
        out: list[str] = []
        for _ in range(_MOST):
            if self._file < 0:
                break
            try:
                record = os.read(self._file, _RECORD)
            except BlockingIOError:
                break
            except BrokenPipeError:  # records were overwritten before they were read: go on with the next
                continue
            except OSError as error:
                self.why_not = error.strerror
                self.close()
                break
            if not record:
                break
            line = _line(record.decode("utf-8", "replace"))
            if any(word in line for word in _WORDS):
                self._lines += 1
                self.reader.feed(split_prefix(line, self._lines))
                out.append(line)
        return out

    def close(self) -> None:
        """Let go of the log."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _line(record: str) -> str:
    """``4,1234,28199846,-;NVRM: Xid …`` → ``[   28.199846] NVRM: Xid …`` (Documentation/ABI/testing/dev-kmsg)."""
    head, semicolon, text = record.partition(";")
    text = text.partition("\n")[0]
    fields = head.split(",")
    if not semicolon or len(fields) < 3 or not fields[2].isdigit():
        return record.partition("\n")[0]
    micros = int(fields[2])
    return f"[{micros // 1_000_000:5d}.{micros % 1_000_000:06d}] {text}"
