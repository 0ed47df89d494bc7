"""The course of a run: samples of the serving engine's pulse, and what happened when."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

_ROW_LIMIT = 200_000
_LINE_LIMIT = 4096


class Sample(NamedTuple):
    """One observation. ``time`` in seconds from the start; ``kv_cache_usage`` from 0 to 1.

    ``state`` is the progress state (STARTING, IDLE, PROGRESSING, PREFILLING, STALLED, DUMPING, DEAD).
    """

    time: float
    tokens_per_s: float | None = None
    in_flight: float | None = None
    kv_cache_usage: float | None = None
    state: str | None = None


class Event(NamedTuple):
    """Something that happened. ``kind``: fault, error, dump, load, note; an open list."""

    time: float
    what: str
    kind: str = "note"


class Timeline(NamedTuple):
    """Samples and events of one run, each in order of time."""

    samples: tuple[Sample, ...] = ()
    events: tuple[Event, ...] = ()

    @property
    def span(self) -> tuple[float, float] | None:
        """First and last second of anything; None when there is nothing."""
        times = [s.time for s in self.samples] + [e.time for e in self.events]
        return (min(times), max(times)) if times else None


def of_rows(rows: Iterable[Any]) -> Timeline:
    """A timeline out of plain rows: ``{"t": …, "event": …, "kind": …}`` or ``{"t": …, "tokens_per_s": …, …}``.

    Rows without a finite ``t`` are left out, as are values that are no finite number.
    """
    samples, events = [], []
    for number, row in enumerate(rows):
        if number >= _ROW_LIMIT:
            break
        time = _number(row.get("t")) if isinstance(row, Mapping) else None
        if time is None:
            continue
        if isinstance(row.get("event"), str):
            kind = row.get("kind")
            events.append(Event(time, row["event"], kind if isinstance(kind, str) else "note"))
            continue
        state = row.get("state")
        samples.append(
            Sample(
                time,
                _number(row.get("tokens_per_s")),
                _number(row.get("in_flight")),
                _number(row.get("kv_cache_usage")),
                state if isinstance(state, str) else None,
            )
        )
    return Timeline(tuple(sorted(samples, key=lambda s: s.time)), tuple(sorted(events, key=lambda e: e.time)))


def of_jsonl(content: bytes) -> Timeline:
    """A timeline from JSON lines; lines that are no JSON (a file cut short ends in one) are left out."""
    import json

    rows = []
    for line in content.splitlines()[:_ROW_LIMIT]:
        if len(line) <= _LINE_LIMIT:
            try:
                rows.append(json.loads(line))
            except (ValueError, RecursionError):
                continue
    return of_rows(rows)


def thinned(samples: tuple[Sample, ...], limit: int = 1200) -> tuple[Sample, ...]:
    """At most about ``limit`` samples: of each stretch the lowest and the highest token rate stay.

    Changes of state stay too, so that a short stall is not averaged away.
    """
    if len(samples) <= limit:
        return samples
    stretch = math.ceil(len(samples) / (limit // 2))
    kept: list[Sample] = []
    for start in range(0, len(samples), stretch):
        part = samples[start : start + stretch]
        wanted = {
            min(range(len(part)), key=lambda i: part[i].tokens_per_s or 0.0),
            max(range(len(part)), key=lambda i: part[i].tokens_per_s or 0.0),
            *(i for i in range(1, len(part)) if part[i].state != part[i - 1].state),
        }
        kept += [part[i] for i in sorted(wanted)[:8]]
    return tuple(kept)


def _number(value: Any) -> float | None:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    return float(value) if -1e15 < value < 1e15 else None
