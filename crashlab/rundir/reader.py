"""Read a run directory back, whole or torn: what is there, and what is missing."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from crashlab.errors import UnreadableInput
from crashlab.inputfile import open_regular
from crashlab.rundir import layout, private
from crashlab.rundir.lines import finite, json_lines, json_object
from crashlab.rundir.parts import gaps

_MAX_JSON = 16 << 20


class Event(NamedTuple):
    """One recorded event. ``at`` is monotonic seconds, ``time`` UTC text, ``fields`` the rest."""

    kind: str
    at: float | None
    time: str | None
    fields: Mapping[str, Any]

    def text(self, name: str) -> str | None:
        """A field if it is text."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else None

    def number(self, name: str) -> int | None:
        """A field if it is a whole number."""
        value = self.fields.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None


class Segment(NamedTuple):
    """A file that holds a stream from byte ``start`` on."""

    path: str
    attempt: int
    stream: str
    start: int
    bytes: int

    @property
    def end(self) -> int:
        """The byte of the stream after its last."""
        return self.start + self.bytes


class RunFolder(NamedTuple):
    """A run directory as found. ``problems`` say what is missing or could not be read; ``by_attempt`` holds
    the events that name an attempt once more, since each attempt is asked about several times."""

    path: str
    info: Mapping[str, Any]
    events: tuple[Event, ...]
    by_attempt: Mapping[int, tuple[Event, ...]]
    segments: tuple[Segment, ...]
    problems: tuple[str, ...]

    @property
    def attempts(self) -> tuple[int, ...]:
        """Numbers of the recorded attempts, in order."""
        return tuple(sorted({*self.by_attempt, *(segment.attempt for segment in self.segments)})) or (1,)

    @property
    def ended(self) -> bool:
        """Whether the run was written to its end."""
        return any(event.kind == "run-ended" for event in self.events)

    def of(self, attempt: int) -> tuple[Event, ...]:
        """Events of one attempt."""
        return self.by_attempt.get(attempt, ())

    def stream(self, attempt: int, stream: str) -> tuple[Segment, ...]:
        """The segments of one stream in their order."""
        return tuple(s for s in self.segments if (s.attempt, s.stream) == (attempt, stream))

    def file(self, *parts: str) -> str:
        """The path of something inside."""
        return os.path.join(self.path, *parts)


def open_run(path: str | os.PathLike[str]) -> RunFolder:
    """Read what is there. Raises UnreadableInput only if the folder is no run directory at all."""
    folder = os.fspath(path)
    if not layout.is_run(folder):
        raise UnreadableInput(
            f"{folder} is no run directory: it has neither {layout.RUN} nor {layout.EVENTS}.",
            hint="Give the folder that 'crashlab run' or 'soak' named, or the dumps themselves.",
        )
    problems: list[str] = []
    info = _info(os.path.join(folder, layout.RUN), problems)
    events = tuple(_events(os.path.join(folder, layout.EVENTS), problems))
    segments = _segments(folder, info, problems)
    if not _complete(events):
        problems.append("The run has no end: crashlab was killed, or is still running.")
    for name in layout.BOUNDED_LOGS:
        problems += gaps(folder, name)
    told = [what for event in events if event.kind == "problem" and (what := event.text("what"))]
    return RunFolder(
        folder, info, events, _grouped(events), segments, tuple(dict.fromkeys((*problems, *told)))
    )


def _grouped(events: tuple[Event, ...]) -> Mapping[int, tuple[Event, ...]]:
    found: dict[int, list[Event]] = {}
    for event in events:
        if (attempt := event.number("attempt")) is not None:
            found.setdefault(attempt, []).append(event)
    return {attempt: tuple(own) for attempt, own in found.items()}


_MARKS = ("started", "ended", "soak-outcome", "run-ended")
"""A server that somebody else runs has no start and end in the record: a soak's outcome ends that attempt."""


def _complete(events: tuple[Event, ...]) -> bool:
    """Whether nothing of the program can be missing: the run has its end, or its last attempt has and only
    the analysis of it does not (which reads the record before the end is written)."""
    marks = [event.kind for event in events if event.kind in _MARKS]
    return bool(marks) and marks[-1] != "started"


def _info(path: str, problems: list[str]) -> Mapping[str, Any]:
    try:
        with open_regular(path, "record", follow=False) as file:
            value = json_object(file.read(_MAX_JSON))
    except (OSError, UnreadableInput) as error:
        problems.append(f"{layout.RUN} cannot be read: {getattr(error, 'strerror', None) or error}.")
        return {}
    if value is None:
        problems.append(f"{layout.RUN} is no JSON object.")
        return {}
    if value.get("schema") != layout.SCHEMA:
        problems.append(
            f"{layout.RUN} has schema {value.get('schema')!r}; this crashlab reads {layout.SCHEMA!r}."
        )
    return value


def _events(path: str, problems: list[str]) -> Iterator[Event]:
    for record in json_lines(path, problems):
        kind, at, time = record.pop("event", None), record.pop("m", None), record.pop("t", None)
        if isinstance(kind, str):
            yield Event(kind, finite(at), time if isinstance(time, str) else None, record)


def _segments(folder: str, info: Mapping[str, Any], problems: list[str]) -> tuple[Segment, ...]:
    overflow = info.get("overflow")
    places = [os.path.join(folder, layout.OUTPUT)]
    if isinstance(overflow, str) and os.path.isdir(overflow):
        if _is_overflow(overflow):
            places.append(overflow)
        else:
            problems.append(f"{overflow} is no overflow folder of this user: what is in it was not read.")
    found: list[Segment] = []
    for place in places:
        try:
            if os.path.islink(place):
                raise OSError(errno.ELOOP, "it is a link, and links are not followed here")
            names = os.listdir(place)
        except (OSError, ValueError) as error:
            problems.append(f"{layout.OUTPUT}/ cannot be read: {getattr(error, 'strerror', None) or error}.")
            continue
        for name in names:
            parsed = layout.parse_segment(name)
            path = os.path.join(place, name)
            size = _size(path)
            if parsed is not None and size is not None:
                found.append(Segment(path, *parsed, size))
    return tuple(sorted(found, key=lambda s: (s.attempt, s.stream, s.start)))


def _is_overflow(path: str) -> bool:
    """A run directory of somebody else may name any folder: only one that this user's crashlab made counts."""
    return os.path.basename(path).startswith(f"crashlab-{os.getuid()}-") and private.is_ours(path)


def _size(path: str) -> int | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
