"""A JSONL log of bounded size: its beginning, its newest part, and what was written around marked moments stay."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from crashlab.rundir.journal import Journal, Reserve
from crashlab.rundir.parts import part_name

PART_BYTES = 2 << 20
CAP_BYTES = 64 << 20
MOST_PINNED = 48
"""Parts that marks protect beyond the cap: three for each mark, so those of sixteen faults. Of more, the
first and the newest stay."""


class _Part:
    """One file of the log: bytes ``start`` to ``start + bytes`` of all that was ever written."""

    __slots__ = ("bytes", "path", "pinned", "start")

    def __init__(self, path: str, start: int) -> None:
        self.path, self.start = path, start
        self.bytes = 0
        self.pinned = False


class BoundedLog:
    """``folder/name``, then ``name.+OFFSET.jsonl`` for further parts of about ``part`` bytes each.

    When the parts exceed ``cap`` bytes, the oldest but the first are removed; ``dropped`` counts their
    bytes. ``heading`` (a record) begins each further part with ``"continued": true``, so that every part
    can be read alone. May be used from several threads.
    """

    def __init__(
        self,
        folder: str,
        name: str,
        *,
        cap: int = CAP_BYTES,
        part: int = PART_BYTES,
        reserve: Reserve | None = None,
    ) -> None:
        self.name = name
        self.cap = cap
        self.dropped = 0
        self.heading: Mapping[str, Any] | None = None
        self._folder, self._part, self._reserve = folder, part, reserve
        self._lost = 0
        self._marked = self._pin_next = self._closed = False
        self._lock = threading.Lock()
        self._parts: list[_Part] = []
        self._open()

    @property
    def lost(self) -> int:
        """Records that found no place on disk."""
        return self._lost + self._journal.lost

    def mark(self) -> None:
        """Something happens now: the part being written, the one before and the one after are kept."""
        self._marked = True

    def append(self, record: Mapping[str, Any]) -> bool:
        """Write one record; False if it (or an earlier one) has to wait for room on the disk."""
        with self._lock:
            if self._closed:
                return False
            if self._marked:
                self._marked = False
                self._pin()
            if self._parts[-1].bytes >= self._part and not self._journal.waiting:
                self._rotate()
            return self._write(record)

    def close(self) -> None:
        """Write what waits and close; later records are not taken."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._journal.close()
                self._lost += self._journal.waiting

    def _open(self) -> None:
        start = self._parts[-1].start + self._parts[-1].bytes if self._parts else 0
        one = _Part(os.path.join(self._folder, part_name(self.name, start)), start)
        one.pinned, self._pin_next = self._pin_next, False
        self._parts.append(one)
        self._journal = Journal(one.path, self._reserve)

    def _write(self, record: Mapping[str, Any]) -> bool:
        done = self._journal.append(record)
        self._parts[-1].bytes = self._journal.written
        return done

    def _rotate(self) -> None:
        self._journal.close()
        self._lost += self._journal.lost
        self._open()
        if self.heading is not None:
            self._write({**self.heading, "continued": True})
        self._forget()

    def _pin(self) -> None:
        for one in self._parts[-2:]:
            one.pinned = True
        self._pin_next = True
        pinned = [one for one in self._parts[1:] if one.pinned]
        for one in pinned[3 : len(pinned) - MOST_PINNED + 3]:
            one.pinned = False

    def _forget(self) -> None:
        loose = [one for one in self._parts[1:-1] if not one.pinned]
        size = self._parts[0].bytes + sum(one.bytes for one in loose)
        for one in loose:
            if size + self._part <= self.cap:
                return
            with suppress(OSError):
                os.unlink(one.path)
            self._parts.remove(one)
            self.dropped += one.bytes
            size -= one.bytes
