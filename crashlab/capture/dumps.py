"""Watch dump files appear, grow, pause and settle, so that nobody is killed while one is written."""

from __future__ import annotations

import os
import re
import socket
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

SETTLE_SECONDS = 2.0
_PLACEHOLDER = re.compile(r"%(.)")
_MAX_FILES = 4096


class DumpFile(NamedTuple):
    """One dump as last seen. ``state``: growing, settled. ``pid`` from its name, if the pattern has %p."""

    path: str
    bytes: int
    state: str
    pid: int | None
    first_seen: float
    changed: float


GROWING, SETTLED = "growing", "settled"


class DumpWatch:
    """Looks at the places that a pattern (CUDA_COREDUMP_FILE) can name.

    A file is settled when it has not changed for :data:`SETTLE_SECONDS` and no process of the tree
    has it open: a writer that pauses still holds it.
    """

    def __init__(self, pattern: str | None, cwd: str, *, ignore_existing: bool = True) -> None:
        self.files: dict[str, DumpFile] = {}
        self._folder, self._name = _split(pattern, cwd)
        self._before: dict[str, tuple[int, int]] = {}
        if ignore_existing:
            self._before = {path: (status.st_size, status.st_mtime_ns) for path, status in self._look()}

    @property
    def growing(self) -> tuple[DumpFile, ...]:
        """Files that are still being written."""
        return tuple(one for one in self.files.values() if one.state == GROWING)

    @property
    def settled(self) -> tuple[DumpFile, ...]:
        """Files that are complete as far as their writer is concerned, in order of appearance."""
        return tuple(
            sorted((f for f in self.files.values() if f.state == SETTLED), key=lambda f: f.first_seen)
        )

    def scan(self, now: float, held_open: Callable[[], Iterable[str]]) -> list[DumpFile]:
        """Look once; the files whose state or size changed. ``held_open`` gives paths that processes
        of the tree have open; it is only called when it matters."""
        changed = []
        held: set[str] | None = None
        for path, status in self._look():
            if path not in self.files and self._before.get(path) == (status.st_size, status.st_mtime_ns):
                continue  # it was there before the program, and is not written anew
            old = self.files.get(path)
            if old is None:
                new = DumpFile(path, status.st_size, GROWING, self._pid(path), now, now)
            elif status.st_size != old.bytes:
                new = old._replace(bytes=status.st_size, changed=now, state=GROWING)
            elif old.state == GROWING and now - old.changed >= SETTLE_SECONDS:
                if held is None:
                    held = {os.path.realpath(one) for one in held_open()}
                if os.path.realpath(path) in held:
                    continue
                new = old._replace(state=SETTLED)
            else:
                continue
            self.files[path] = new
            changed.append(new)
        return changed

    def settle_all(self) -> None:
        """Nobody is left who could write."""
        for path, one in self.files.items():
            with suppress(OSError):
                one = one._replace(bytes=os.stat(path).st_size)
            self.files[path] = one._replace(state=SETTLED)

    def _look(self) -> list[tuple[str, os.stat_result]]:
        if self._folder is None or self._name is None:
            return []
        out = []
        with suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                if not self._name.fullmatch(entry.name):
                    continue
                with suppress(OSError):
                    status = entry.stat()
                    # A FIFO or device is streamed into, and an empty file is only the driver's open().
                    if stat.S_ISREG(status.st_mode) and status.st_size > 0:
                        out.append((entry.path, status))
                if len(out) >= _MAX_FILES:
                    break
        return out

    def _pid(self, path: str) -> int | None:
        found = self._name.fullmatch(os.path.basename(path)) if self._name is not None else None
        text = (found.groupdict() if found is not None else {}).get("pid")
        return int(text) if text else None


def _split(pattern: str | None, cwd: str) -> tuple[str | None, re.Pattern[str] | None]:
    """Folder and name pattern of a CUDA_COREDUMP_FILE value. Placeholders in the folder are expanded
    where that is possible (%h); with others there the place cannot be watched."""
    if not pattern:
        return None, None
    folder, _, name = os.path.join(cwd, pattern).rpartition("/")
    folder = folder.replace("%h", socket.gethostname())
    if "%" in folder.replace("%%", ""):
        return None, None
    return folder or "/", name_pattern(name)


def name_pattern(name: str) -> re.Pattern[str]:
    """``%h.%p.%t.nvcudmp`` as a regular expression with the group ``pid``."""
    out, at, seen = [], 0, False
    for found in _PLACEHOLDER.finditer(name):
        out.append(re.escape(name[at : found.start()]))
        kind = found.group(1)
        if kind == "p":
            out.append("(?P=pid)" if seen else r"(?P<pid>\d{1,10})")
            seen = True
        else:
            out.append({"h": r"[^/]{1,255}", "t": r"\d{1,20}"}.get(kind, re.escape(kind)))
        at = found.end()
    return re.compile("".join(out) + re.escape(name[at:]))
