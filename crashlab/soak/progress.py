"""Is the engine making progress? A pure function of time-stamped sights; it reads no clock and no socket.

What must not be believed: /health only reads a flag and says 200 for ever; in a hang every metric
freezes, gauges included, so that "running: 16" is no sign of work; token counters stand still during
a long prefill, while the cache's use and the prefix queries still move. Recorded with vLLM 0.25.1.
"""

from __future__ import annotations

from typing import NamedTuple

from crashlab.postmortem.words import counted

STARTING = "STARTING"
IDLE = "IDLE"
PROGRESSING = "PROGRESSING"
PREFILLING = "PREFILLING"
FAILING = "FAILING"
STALLED = "STALLED"
DUMPING = "DUMPING"
DEAD = "DEAD"
STATES = (STARTING, IDLE, PROGRESSING, PREFILLING, FAILING, STALLED, DUMPING, DEAD)

_MANY_FAILURES = 3
_BRIEF = 5.0
"""Seconds without a primary signal before a state is called PREFILLING: metrics are read every second."""


class Limits(NamedTuple):
    """Seconds: ``stall`` without any signal; ``prefill`` with secondary signals only."""

    stall: float = 120.0
    prefill: float = 900.0


class Sight(NamedTuple):
    """What is seen at ``now``.

    ``in_flight`` requests of ours, of which ``unanswered`` have no first byte; ``oldest`` is when the
    one that has waited longest was last heard of. ``running``, ``primary`` and ``secondary`` come from
    the metrics (None: not readable now, or the server has none); ``asleep`` is the server's own word.
    ``failing`` requests in a row have failed, and none brings an answer now.
    """

    now: float
    ready: bool = True
    alive: bool = True
    dumping: bool = False
    in_flight: int = 0
    unanswered: int = 0
    oldest: float | None = None
    client_bytes: int = 0
    primary: tuple[float, ...] | None = None
    secondary: tuple[float, ...] | None = None
    running: float | None = None
    asleep: bool | None = None
    failing: int = 0


class Status(NamedTuple):
    """``since`` when the state holds; ``quiet`` seconds without a primary signal, ``silent`` without
    any at all; ``why`` in words."""

    state: str
    since: float
    quiet: float
    silent: float
    why: str


class Progress:
    """Feed sights in the order of time; the latest :attr:`status` is kept."""

    def __init__(self, now: float, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.longest_gap = 0.0
        self.status = Status(STARTING, now, 0.0, 0.0, "not ready yet")
        self._moved = now
        self._stirred = now
        self._bytes = 0
        self._primary: tuple[float, ...] | None = None
        self._secondary: tuple[float, ...] | None = None
        self._had_work = self._heard = False

    @property
    def patience(self) -> float:
        """The stall limit, longer for a server that has made longer pauses and gone on by itself."""
        return max(self.limits.stall, min(2 * self.longest_gap, self.limits.prefill))

    def see(self, sight: Sight) -> Status:
        """Take one sight; the state it leads to."""
        work = sight.in_flight > 0 or bool(sight.running)
        if (work and not self._had_work) or not sight.ready:
            # Nothing was to be done before: silence is counted from here.
            self._moved = self._stirred = max(self._moved, sight.now)
            self._heard = False
        self._had_work = work
        self._note_signals(sight)
        state, why = self._judge(sight, work)
        old = self.status
        since = old.since if old.state == state else sight.now
        self.status = Status(state, since, sight.now - self._moved, sight.now - self._stirred, why)
        return self.status

    def _note_signals(self, sight: Sight) -> None:
        moved = sight.client_bytes != self._bytes
        self._bytes = sight.client_bytes
        if sight.primary is not None:
            moved = moved or (self._primary is not None and sight.primary != self._primary)
            self._primary = sight.primary
        stirred = moved
        if sight.secondary is not None:
            stirred = stirred or (self._secondary is not None and sight.secondary != self._secondary)
            self._secondary = sight.secondary
        if stirred:
            if self.status.state in (PROGRESSING, PREFILLING):
                self.longest_gap = max(self.longest_gap, sight.now - self._stirred)
            self._stirred = sight.now
        if moved:
            self._moved, self._heard = sight.now, True

    def _judge(self, sight: Sight, work: bool) -> tuple[str, str]:
        if not sight.alive:
            return DEAD, "the server has ended"
        if sight.dumping:
            return DUMPING, "a GPU core dump is being written: nothing may be killed"
        if not sight.ready:
            return STARTING, "no answer to a first request yet"
        if sight.asleep:
            return IDLE, "the server says that it sleeps"
        failing = sight.failing >= _MANY_FAILURES
        failures = f"the last {sight.failing} requests all failed"
        if not work:
            return (FAILING, failures) if failing else (IDLE, "nothing is in flight")
        quiet, silent = sight.now - self._moved, sight.now - self._stirred
        waited = self._waited(sight, silent)
        if silent >= self.patience and waited >= self.patience:
            return STALLED, f"{_what(sight)}, and no sign of progress for {silent:.0f} s"
        if quiet >= self.limits.prefill:
            return STALLED, f"only the cache's figures moved for {quiet:.0f} s, and no token came"
        if failing:
            return FAILING, failures
        if quiet < _BRIEF:
            return PROGRESSING, "tokens come" if self._heard else "requests have just been sent"
        if silent < quiet:
            return PREFILLING, f"no token for {quiet:.0f} s, but the cache's figures move"
        if sight.in_flight and sight.unanswered == sight.in_flight:
            return PREFILLING, f"no first token for {quiet:.0f} s"
        return PROGRESSING, f"no token for {quiet:.0f} s"

    def _waited(self, sight: Sight, silent: float) -> float:
        """How long some work has really waited. A server that turns requests away at once (429) has
        requests in flight at any time, none of them for long: it refuses, and does not stall."""
        if sight.running:
            return silent
        return 0.0 if sight.oldest is None else sight.now - sight.oldest


def _what(sight: Sight) -> str:
    parts = []
    if sight.in_flight:
        parts.append(f"{counted(sight.in_flight, 'request')} in flight")
    if sight.running:
        parts.append(f"the server counts {sight.running:.0f} running")
    return ", ".join(parts)
