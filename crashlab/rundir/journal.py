"""Append-only JSON lines: a record is in the file before :meth:`Journal.append` returns."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

_FULL = (errno.ENOSPC, errno.EDQUOT)
_KEPT_IN_MEMORY = 2000


class Reserve:
    """Space that is set aside when a run begins and given back when the disk is full.

    Without it a dump that fills the disk would leave no room for the few kilobytes that say so.
    """

    def __init__(self, path: str, size: int) -> None:
        self._path = path
        self.held = False
        try:
            with open(path, "xb") as file:
                os.posix_fallocate(file.fileno(), 0, size)
            self.held = True
        except OSError:
            with suppress(OSError):
                os.unlink(path)

    def release(self) -> bool:
        """Give the space back; True if there was any."""
        if not self.held:
            return False
        self.held = False
        with suppress(OSError):
            os.unlink(self._path)
        return True


class Journal:
    """One JSONL file. Records that cannot be written are kept (bounded) and tried again later.

    ``lost`` counts those that were not kept, ``written`` the bytes that are in the file.

    ``kill -9`` between two calls loses nothing; a record cut short by a full disk stays on a line of
    its own, which readers skip.
    """

    def __init__(self, path: str, reserve: Reserve | None = None) -> None:
        self._path = path
        self._reserve = reserve
        self._waiting: list[bytes] = []
        self._torn = False
        self.lost = 0
        self.written = 0
        self.error: str | None = None
        try:
            self._file = os.open(
                path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644
            )
        except OSError as error:
            self._file = -1
            self.error = error.strerror

    @property
    def waiting(self) -> int:
        """Records that wait for room on the disk."""
        return len(self._waiting)

    def append(self, record: Mapping[str, Any]) -> bool:
        """Write one record; False if it (or an earlier one) has to wait."""
        line = json.dumps(record, ensure_ascii=False, default=str).encode("utf-8", "replace") + b"\n"
        if len(self._waiting) >= _KEPT_IN_MEMORY:
            self.lost += 1
        else:
            self._waiting.append(line)
        return self.flush()

    def flush(self) -> bool:
        """Write what waits, oldest first."""
        while self._waiting:
            if not self._write(self._waiting[0]):
                return False
            self._waiting.pop(0)
        return True

    def close(self) -> None:
        """Flush and close."""
        self.flush()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _write(self, line: bytes) -> bool:
        if self._file < 0:
            return False
        data = b"\n" + line if self._torn else line
        for _ in range(2):
            try:
                written = os.write(self._file, data)
            except OSError as error:
                self.error = error.strerror
                if error.errno in _FULL and self._reserve is not None and self._reserve.release():
                    continue
                return False
            self.written += written
            self._torn = written < len(data)
            if not self._torn:
                return True
            data = b"\n" + line
            if self._reserve is None or not self._reserve.release():
                return False
        return False


def stamp() -> dict[str, Any]:
    """The two clocks of a record: ``m`` monotonic seconds for order, ``t`` UTC for people.

    CLOCK_MONOTONIC is the same for all processes of a machine, and does not jump when the wall clock
    is set.
    """
    now = time.time()
    millis = int(now * 1000) % 1000
    utc = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
    return {"m": round(time.monotonic(), 6), "t": f"{utc}.{millis:03d}Z"}
