"""Follow the recorded output as it grows, from segment to segment, without slowing its writer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

from crashlab.rundir import layout

_CHUNK = 1 << 20


class StreamFollower:
    """Yields the new bytes of one stream. What the recorder removed meanwhile is skipped."""

    def __init__(self, folders: tuple[str, ...], attempt: int, stream: str) -> None:
        self.offset = 0
        self._folders = folders
        self._attempt = attempt
        self._stream = stream
        self._file = -1
        self._start = 0

    def read(self, most: int) -> Iterator[bytes]:
        """New bytes, at most about ``most`` of them."""
        while most > 0:
            if self._file < 0 and not self._open():
                return
            try:
                data = os.read(self._file, min(_CHUNK, most))
            except OSError:
                data = b""
            if data:
                self.offset += len(data)
                most -= len(data)
                yield data
            elif not self._advance():
                return

    def skip(self, keep: int) -> int:
        """Leave out what comes before the last ``keep`` bytes; how many bytes were left out."""
        end = 0
        for start, path in self._segments().items():
            with suppress(OSError):
                end = max(end, start + os.stat(path).st_size)
        left_out = end - keep - self.offset
        if left_out <= 0:
            return 0
        self.close()
        self.offset += left_out
        return left_out

    def close(self) -> None:
        """Let go of the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _open(self) -> bool:
        starts = self._segments()
        here = [start for start in starts if start <= self.offset]
        start = max(here) if here else min(starts, default=None)
        if start is None:
            return False
        try:
            self._file = os.open(starts[start], os.O_RDONLY | os.O_CLOEXEC)
            self.offset = max(self.offset, start)
            os.lseek(self._file, self.offset - start, os.SEEK_SET)
        except OSError:
            self.close()
            return False
        self._start = start
        return True

    def _advance(self) -> bool:
        """Go to the next segment when this one is at its end and there is one."""
        later = sorted(start for start in self._segments() if start > self._start)
        if not later:
            return False
        try:
            if os.fstat(self._file).st_size > self.offset - self._start:
                return True  # it grew between our read and the look at the folder
        except OSError:
            pass
        self.close()
        self.offset = max(self.offset, later[0])
        return True

    def _segments(self) -> dict[int, str]:
        found = {}
        for folder in self._folders:
            try:
                names = os.listdir(folder)
            except OSError:
                continue
            for name in names:
                parsed = layout.parse_segment(name)
                if parsed is not None and parsed[:2] == (self._attempt, self._stream):
                    found[parsed[2]] = os.path.join(folder, name)
        return found
