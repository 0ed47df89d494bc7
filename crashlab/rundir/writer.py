"""Create a run directory and write to it: events, facts, files, and at the end a manifest."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from crashlab import __version__
from crashlab.errors import MissingTool, UsageError
from crashlab.rundir import layout, private
from crashlab.rundir.boundedlog import CAP_BYTES, BoundedLog
from crashlab.rundir.journal import Journal, Reserve, stamp
from crashlab.rundir.manifest import build_manifest

RESERVE_BYTES = 1 << 20
DEFAULT_PARENT = "crashlab-runs"
_SHM = "/dev/shm"


def default_name(argv: Sequence[str], now: float | None = None) -> str:
    """``20261130T012345Z-vllm``: the time and what was run."""
    utc = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    words = [os.path.basename(part) for part in argv if part and not part.startswith("-")]
    interpreter = bool(words) and words[0].startswith(("python", "bash", "sh", "env"))
    word = words[1] if interpreter and len(words) > 1 else (words[0] if words else "run")
    slug = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in word)[:40].strip("-.")
    return f"{utc}-{slug or 'run'}"


class RunWriter:
    """The one writer of a run directory. Failing writes never raise: they are counted and told.

    ``path`` is absolute. ``moved_from`` is the folder that was wanted when it could not be written.
    ``overflow`` is where output goes while the folder takes none: in memory, where a full disk does
    not matter; it is made only when it is needed.
    """

    def __init__(self, path: str, moved_from: str | None = None, why_moved: str | None = None) -> None:
        self.path = path
        self.moved_from = moved_from
        self.why_moved = why_moved
        self.problems: list[str] = []
        memory = _SHM if os.access(_SHM, os.W_OK) else tempfile.gettempdir()
        self.overflow = os.path.join(
            memory, f"crashlab-{os.getuid()}-{os.path.basename(path)}-{os.urandom(4).hex()}"
        )
        self._reserve = Reserve(os.path.join(path, layout.RESERVE), RESERVE_BYTES)
        self._events = Journal(os.path.join(path, layout.EVENTS), self._reserve)
        self._logs: dict[str, BoundedLog] = {}

    @classmethod
    def create(
        cls, out: str | None, argv: Sequence[str], *, fallbacks: Sequence[str] | None = None
    ) -> RunWriter:
        """Make the folder, or when that is impossible one below ``fallbacks`` (default: the temporary
        folder, then /dev/shm), so that the evidence has a home in any case.

        Raises UsageError if ``out`` exists and is not empty, MissingTool if no folder can be written.
        """
        name = default_name(argv)
        wanted = os.path.abspath(out if out is not None else os.path.join(DEFAULT_PARENT, name))
        if fallbacks is None:
            fallbacks = (tempfile.gettempdir(), _SHM)
        places = [
            wanted,
            *(os.path.join(place, f"{DEFAULT_PARENT}-{os.getuid()}", name) for place in fallbacks),
        ]
        why: str | None = None
        for place in places:
            if len(place) > 900 or "%" in place:
                # The driver takes at most 1023 characters, and reads % as the start of a placeholder.
                why = why or "its path is too long or holds a '%'"
                continue
            if place == wanted and out is None and private.is_planted(os.path.dirname(place)):
                why = (
                    f"{DEFAULT_PARENT} lies where everybody may write, and is not a folder of this user alone"
                )
                continue
            try:
                if place != wanted:
                    private.make(os.path.dirname(place))
                free = _make(place, fresh=out is None or place != wanted)
            except OSError as error:
                why = why or error.strerror
                continue
            return cls(free, None if place == wanted else wanted, why if place != wanted else None)
        raise MissingTool(
            f"No run directory can be written: {wanted}: {why}.",
            hint="Name a writable folder with --out DIR.",
        )

    def file(self, *parts: str) -> str:
        """The absolute path of something inside."""
        return os.path.join(self.path, *parts)

    def start(self, facts: Mapping[str, Any]) -> None:
        """Write ``run.json``: what is known before anything runs."""
        tool = {"name": "crashlab", "version": __version__}
        self.write_json(layout.RUN, {"schema": layout.SCHEMA, "tool": tool, **stamp(), **facts})
        if self.moved_from is not None:
            self.problem(
                f"{self.moved_from} could not be written ({self.why_moved}); the run is in {self.path}"
            )

    def event(self, kind: str, **fields: Any) -> None:
        """Append one event. What is None is left out."""
        record = {**stamp(), "event": kind, **{k: v for k, v in fields.items() if v is not None}}
        if not self._events.append(record) and self._events.error is not None:
            self._note(f"events cannot be written: {self._events.error}")

    def log(self, name: str, cap: int = CAP_BYTES) -> BoundedLog:
        """A JSONL log of bounded size; the same one for the same name. It is closed at the end."""
        if name not in self._logs:
            self._logs[name] = BoundedLog(self.path, name, cap=cap)
        return self._logs[name]

    def gpu_sample(self, sample: Mapping[str, Any]) -> None:
        """Append one GPU sample."""
        self.log(layout.GPU_SAMPLES).append({**stamp(), **sample})

    def problem(self, what: str) -> None:
        """Something that limits what can be known later; recorded once, and told at the end."""
        if self._note(what):
            self.event("problem", what=what)

    def write_json(self, name: str, value: Any) -> bool:
        """Write a JSON file at once (temporary file and rename), never half of it."""
        return self.write_file(name, json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")

    def write_file(self, name: str, content: str | bytes) -> bool:
        """Write a small file at once; on a full disk the reserve is used. False if it was impossible."""
        data = content.encode("utf-8", "replace") if isinstance(content, str) else content
        target = self.file(name)
        for _ in range(2):
            try:
                os.makedirs(os.path.dirname(target), exist_ok=True)
                _replace(target, data)
                return True
            except OSError as error:
                reason = error.strerror
                if not self._reserve.release():
                    break
        self._note(f"{name} cannot be written: {reason}")
        return False

    def finish(self, **fields: Any) -> None:
        """The last event and the manifest. Without them a reader knows that the run was cut off."""
        for log in self._logs.values():
            log.close()
            if log.lost:
                self.problem(f"{log.lost:,} lines of {log.name} found no place on disk")
            if log.dropped:
                self._note(
                    f"{log.dropped:,} bytes in the middle of {log.name} were dropped to bound its size"
                )
        self.event("run-ended", problems=list(self.problems) or None, **fields)
        self._reserve.release()
        self._events.close()
        self.write_json(layout.MANIFEST, build_manifest(self.path))

    def _note(self, what: str) -> bool:
        if what in self.problems:
            return False
        self.problems.append(what)
        return True


def _make(place: str, *, fresh: bool) -> str:
    """Create the folder (mode 0700; an empty one that is there keeps its own) and its parts; with ``fresh``
    under a free name beside the wanted one."""
    for number in range(1, 1000):
        path = place if number == 1 else f"{place}-{number}"
        if not private.make_new(path):
            if fresh:
                continue
            if not os.path.isdir(path) or os.listdir(path):
                raise UsageError(
                    f"{path} exists and is not an empty folder.",
                    hint="A run directory is written once: name a new one with --out.",
                )
        for part in (layout.CORES, layout.PIPES, layout.OUTPUT, layout.HOST):
            os.mkdir(os.path.join(path, part))
        return path
    raise FileExistsError(17, "a thousand runs have this name", place)


def _replace(target: str, data: bytes) -> None:
    temporary = f"{target}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(temporary, flags, 0o644), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)
        raise
