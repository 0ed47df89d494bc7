"""What the load is doing now: written by the loop that drives it, read by whoever watches.

Single values are replaced whole, so a reader in another thread never sees half of one.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable
from typing import NamedTuple

from crashlab.soak.ask import Ask
from crashlab.soak.record import Record

_REMEMBERED = 64


class Flight:
    """A request that is under way. Times on CLOCK_MONOTONIC; ``first`` and ``last`` bytes, None: not yet.

    ``doom`` is set by the watchdog before it cancels: the error class that ends the request.
    """

    __slots__ = ("ask", "bytes", "connected", "doom", "first", "gap", "last", "sent", "task")

    def __init__(self, ask: Ask, sent: float, task: object = None) -> None:
        self.ask = ask
        self.sent = sent
        self.task = task
        self.connected = False
        self.first: float | None = None
        self.last: float | None = None
        self.gap = 0.0
        self.bytes = 0
        self.doom: str | None = None

    def heard(self, now: float, count: int) -> None:
        """``count`` bytes of the answer have come."""
        if self.last is None:
            self.first = now
        elif now - self.last > self.gap:
            self.gap = now - self.last
        self.last = now
        self.bytes += count

    @property
    def since(self) -> float:
        """The last sign of the server in this request, or when it was sent."""
        return self.last if self.last is not None else self.sent


class InFlight(NamedTuple):
    """Those under way now. ``oldest``: the earliest last sign among them; ``waiting``: before their
    first byte. Prompt characters tell how large the work is."""

    requests: int = 0
    waiting: int = 0
    oldest: float | None = None
    prompt_chars: int = 0


class Board:
    """Counters of the whole load."""

    def __init__(self) -> None:
        self.flights: dict[int, Flight] = {}
        self.bytes = 0
        self.tokens = 0
        self.prompt_tokens = 0
        self.sent = 0
        self.finished = 0
        self.succeeded = 0
        self.rejected = 0
        self.errors: collections.Counter[str] = collections.Counter()
        self.shapes: collections.Counter[str] = collections.Counter()
        self.last_byte: float | None = None
        self.first_success: float | None = None
        self.last_success: float | None = None
        self.failures_in_a_row = 0
        self.unserved: collections.Counter[str] = collections.Counter()
        """Ends since the last answer, by class; unlike the failures in a row with those turned away."""
        self.flagged = 0
        self.recent: collections.deque[Record] = collections.deque(maxlen=_REMEMBERED)

    def in_flight(self) -> InFlight:
        """A summary of what is under way."""
        flights: Iterable[Flight] = list(self.flights.values())
        count = waiting = chars = 0
        oldest: float | None = None
        for flight in flights:
            count += 1
            waiting += flight.first is None
            chars += flight.ask.prompt_chars
            oldest = flight.since if oldest is None else min(oldest, flight.since)
        return InFlight(count, waiting, oldest, chars)

    def heard(self, now: float, count: int) -> None:
        """Bytes of some answer have come."""
        self.bytes += count
        self.last_byte = now

    def note(self, record: Record, now: float) -> None:
        """A request has ended."""
        self.finished += 1
        self.shapes[record.shape] += 1
        self.tokens += record.tokens
        self.prompt_tokens += record.prompt_tokens or 0
        self.recent.append(record)
        if record.error is None:
            self.succeeded += 1
            self._served()
            self.last_success = now
            if self.first_success is None:
                self.first_success = now
            return
        self.errors[record.error] += 1
        if record.error in ("cancelled", "stopped", "empty"):
            self._served()
            return
        self.unserved[record.error] += 1
        if record.error == "rejected":
            self.rejected += 1
        else:
            self.failures_in_a_row += 1

    def _served(self) -> None:
        self.failures_in_a_row = 0
        self.unserved = collections.Counter()
