"""How long each stage of an answer may take. A sweep over all requests is cheaper than a timer a chunk."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from crashlab.soak import classes
from crashlab.soak.board import Flight


class Deadlines(NamedTuple):
    """Seconds. ``first`` counts from sending to the first byte of the answer's body; a long prefill on
    a slow machine needs it. Longer than the stall limit on purpose: a stall is judged over all
    requests, and a request that is cut off is no longer in flight."""

    connect: float = 30.0
    first: float = 1200.0
    chunk: float = 600.0
    total: float = 3600.0


def overdue(flight: Flight, deadlines: Deadlines, now: float) -> str | None:
    """The error class of a request that has taken too long, or None."""
    if now - flight.sent >= deadlines.total:
        return classes.TIMEOUT_TOTAL
    if flight.last is not None:
        return classes.TIMEOUT_CHUNK if now - flight.last >= deadlines.chunk else None
    if not flight.connected and now - flight.sent >= deadlines.connect:
        return classes.TIMEOUT_CONNECT
    return classes.TIMEOUT_FIRST if now - flight.sent >= deadlines.first else None


def sweep(flights: Iterable[Flight], deadlines: Deadlines, now: float) -> list[Flight]:
    """Mark those that are overdue and give them back, to be cancelled."""
    out = []
    for flight in flights:
        if flight.doom is None and (reason := overdue(flight, deadlines, now)) is not None:
            flight.doom = reason
            out.append(flight)
    return out
