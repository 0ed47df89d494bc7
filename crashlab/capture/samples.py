"""When to look at which process's loaded libraries: soon after it begins, again later, and at once when it fails."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from crashlab.capture.libraries import Loaded, identify, mapped_files, uses_cuda
from crashlab.capture.tree import Proc
from crashlab.rundir import redact

_CALM = 600.0
_WAITING = 2.0
"""Until a process loads the driver it is looked at every two seconds (a pipe that appears tells sooner); from
then on at growing distances, since cuDNN and cuBLAS are loaded late, some with the first request."""
_MAX_PROCESSES = 256


class Sample(NamedTuple):
    """What one process has loaded. ``variables`` differ from those that the program was given."""

    pid: int
    name: str
    libraries: tuple[Loaded, ...]
    variables: Mapping[str, str]


class LibrarySampler:
    """Only processes that have the CUDA driver library are of interest; only changes are told."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.latest: dict[int, Sample] = {}
        self._given = redact.variables(environment)
        # (pid, creation time) → (since when it is at this stage, when to look next)
        self._due: dict[tuple[int, float], tuple[float, float]] = {}
        self._seen: dict[int, frozenset[str]] = {}

    def look(self, processes: Iterable[Proc], now: float, *, all_now: bool = False) -> list[Sample]:
        """Samples that are due, of processes whose set of libraries has changed."""
        out = []
        for process in processes:
            key = (process.pid, process.created)
            since, due = self._due.get(key, (now, now))
            if now < due and not all_now:
                continue
            before = process.pid in self._seen
            if (sample := self._sample(process)) is not None:
                out.append(sample)
            uses = process.pid in self._seen
            if uses and not before:
                since = now
            step = min(_CALM if uses else _WAITING, max(0.5, (now - since) / 2))
            if key in self._due or len(self._due) < _MAX_PROCESSES * 16:
                self._due[key] = (since, now + step)
        return out

    def _sample(self, process: Proc) -> Sample | None:
        paths = mapped_files(process.pid)
        if not uses_cuda(paths):
            return None
        found = frozenset(path for path in paths if ".so" in path)
        if self._seen.get(process.pid) == found or len(self.latest) >= _MAX_PROCESSES:
            return None
        self._seen[process.pid] = found
        sample = Sample(process.pid, process.name, identify(paths), self._variables(process.pid))
        self.latest[process.pid] = sample
        return sample

    def _variables(self, pid: int) -> dict[str, str]:
        text = b""
        with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
            text = file.read(1 << 20)
        own = {}
        for part in text.split(b"\0"):
            name, equals, value = part.decode("utf-8", "replace").partition("=")
            if equals:
                own[name] = value
        changed = redact.variables(own)
        return {
            name: value
            for name, value in changed.items()
            if self._given.get(name) != value and value != redact.NOT_RECORDED
        }
