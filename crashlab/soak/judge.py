"""When is a soak over, and why? Looks at server, load and state; acts on nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crashlab.postmortem.words import counted
from crashlab.soak import progress, tail
from crashlab.soak.advice import next_step
from crashlab.soak.board import Board
from crashlab.soak.driver import LoadDriver
from crashlab.soak.exposure import Exposure, duration
from crashlab.soak.outcome import (
    CLEAN,
    DIED,
    FAILING,
    FAULT,
    GARBAGE,
    INTERRUPTED,
    LOAD_FAILED,
    NEVER_READY,
    REFUSES,
    STALL,
    Outcome,
)
from crashlab.soak.progress import Status
from crashlab.soak.servers import ServerView
from crashlab.soak.serverurl import listens, place_of
from crashlab.soak.settings import SoakSettings

_HOPELESS = 30
_GONE_SECONDS = 20.0
_FINAL_SECONDS = 10.0
_TURNED_AWAY, _TURNED_AWAY_SECONDS = 100, 60.0


class Judge:
    """:meth:`look` gives the outcome once there is one. ``stalls`` counts those seen so far."""

    def __init__(
        self, settings: SoakSettings, load: LoadDriver, tell: Callable[[str, dict[str, Any]], None]
    ) -> None:
        self.stalls = 0
        self._settings, self._load, self._tell = settings, load, tell
        self._stalled = self._ended = False

    def look(
        self,
        view: ServerView,
        status: Status,
        now: float,
        *,
        waited: float | None,
        interrupted: bool,
        exposure: Exposure,
    ) -> Outcome | None:
        """``waited``: seconds without readiness, None once the server is ready."""
        load = self._load
        self._ended = view.ended is not None
        if view.ended is not None:
            if waited is not None and not view.faults and not interrupted:
                return Outcome(NEVER_READY, f"{view.ended} before it answered ({load.not_ready})")
            if interrupted and not view.faults:
                return Outcome(INTERRUPTED, self._interrupted_words(exposure, waited))
            return Outcome(FAULT if view.faults else DIED, view.ended)
        if view.dumping:
            return None
        if interrupted:
            return Outcome(INTERRUPTED, self._interrupted_words(exposure, waited))
        if waited is not None:
            return self._still_starting(waited)
        if (bad := load.garbage()) is not None:
            return Outcome(GARBAGE, bad, examples=self._examples())
        if (found := self._stall(status) or self._gone(now, exposure)) is not None:
            return found
        return self._spent(exposure, now)

    def notes(self, outcome: Outcome) -> tuple[str, ...]:
        """What else is worth telling: canaries, muted detectors, findings, stalls."""
        load, notes = self._load, []
        if outcome.kind == NEVER_READY:
            notes.append(next_step(load.not_ready, ended=self._ended))
        if (words := load.canaries.words()) is not None:
            notes.append(f"{words[:1].upper()}{words[1:]}.")
        for kind, share in load.watch.muted.items():
            notes.append(f"The detector '{kind}' was muted: {share:.0%} of the first answers showed it, too.")
        for finding in load.watch.findings:
            first = f" (first: {finding.first})" if finding.first else ""
            notes.append(f"Answers: {finding.what}{first}.")
        if self.stalls and outcome.kind != STALL:
            notes.append(f"Noted during the run: {counted(self.stalls, 'stall')}.")
        if load.external is not None:
            notes.append(
                f"The load command ran {counted(load.external.runs, 'time')}, {load.external.failed} failed."
            )
        return tuple(notes)

    def _still_starting(self, waited: float) -> Outcome | None:
        load = self._load
        if not load.alive and load.problem is not None:
            return Outcome(LOAD_FAILED, load.problem)
        if load.final and waited >= _FINAL_SECONDS:
            return Outcome(NEVER_READY, load.not_ready)
        if waited >= self._settings.ready_within:
            return Outcome(NEVER_READY, f"no answer in {duration(waited)}; last: {load.not_ready}")
        return None

    def _stall(self, status: Status) -> Outcome | None:
        if status.state != progress.STALLED:
            if self._stalled:
                self._stalled = False
                self._tell("soak-stall-ended", {"state": status.state, "why": status.why})
            return None
        probe = self._load.probe
        health = probe.latest.health if probe is not None and probe.latest is not None else None
        if not self._stalled:
            self._stalled = True
            self.stalls += 1
            self._tell("soak-stall", {"why": status.why, "health": health})
        if self._settings.on_stall != "end":
            return None
        return Outcome(STALL, status.why + (f", while /health says {health}" if health is not None else ""))

    def _gone(self, now: float, exposure: Exposure) -> Outcome | None:
        """A server whose process we do not see, or that lives on without its engine: only failures."""
        board = self._load.board
        if board.failures_in_a_row < _HOPELESS:
            return self._turned_away(now, exposure)
        last = f"{tail.last_words(board)}: {tail.last_reason(board)}"
        if board.succeeded == 0:
            return self._never_served(exposure, last)
        if board.last_success is not None and now - board.last_success >= _GONE_SECONDS:
            if not listens(self._settings.url):
                return self._closed()
            return Outcome(DIED, f"it answers no request any more; {last}"[:400])
        return None

    def _never_served(self, exposure: Exposure, last: str) -> Outcome | None:
        """Nothing but failures since it was ready: dead from the first requests on, or never to be loaded."""
        board = self._load.board
        if not listens(self._settings.url):
            return self._closed()
        if board.tokens:
            late = exposure.seconds >= _GONE_SECONDS
            return Outcome(DIED, f"it answers no request any more; {last}"[:400]) if late else None
        failed = counted(board.failures_in_a_row, "request")
        return Outcome(REFUSES, f"{failed} failed and none succeeded: {tail.last_reason(board)}"[:400])

    def _turned_away(self, now: float, exposure: Exposure) -> Outcome | None:
        """A budget of answers has no end where a server only says 429 or 503."""
        board = self._load.board
        many = sum(board.unserved.values()) >= _TURNED_AWAY
        if self._settings.budget.requests is None or not many or exposure.seconds < _TURNED_AWAY_SECONDS:
            return None
        if board.last_success is not None and now - board.last_success < _TURNED_AWAY_SECONDS:
            return None
        return self._failing() if tail.answers_nothing(board, now) else None

    def _spent(self, exposure: Exposure, now: float) -> Outcome | None:
        load = self._load
        if load.alive:
            spent = self._settings.budget.spent(exposure)
            return None if spent is None else self._end(f"the budget of {spent} is spent", exposure, now)
        if load.problem is not None:
            dead = load.external is not None and not listens(self._settings.url)
            return self._closed() if dead else Outcome(LOAD_FAILED, load.problem)
        return self._end("all requests were sent", exposure, now)

    def _end(self, why: str, exposure: Exposure, now: float) -> Outcome:
        """Nothing was found so far. But is this still a server that answers?"""
        board = self._load.board
        doubtful = board.failures_in_a_row > 0 or self._load.external is not None
        if doubtful and not listens(self._settings.url):
            return self._closed()
        if tail.answers_nothing(board, now) or tail.mostly_failed(board):
            return self._failing()
        return Outcome(CLEAN, f"{why}: {_with_failures(exposure.words(), board)}")

    def _closed(self) -> Outcome:
        last = tail.last_words(self._load.board)
        also = f"; {last}" if last is not None else ""
        return Outcome(DIED, f"{place_of(self._settings.url)} takes no connection any more{also}")

    def _failing(self) -> Outcome:
        board = self._load.board
        parts = [tail.failures_words(board), tail.last_words(board)]
        words = ", and ".join(part for part in parts if part is not None)
        return Outcome(FAILING, f"{words}; the last: {tail.last_reason(board)}"[:400])

    def _interrupted_words(self, exposure: Exposure, waited: float | None) -> str:
        if waited is not None:
            return "interrupted before the server was ready"
        return f"interrupted by the user: {_with_failures(exposure.words(), self._load.board)}"

    def _examples(self) -> tuple[str, ...]:
        return tuple(e for f in self._load.watch.findings if f.certain for e in f.examples)[:3]


def _with_failures(words: str, board: Board) -> str:
    """What the load came to; that requests failed is not left to the small print."""
    parts = [words, tail.failures_words(board), tail.last_words(board)]
    return "; ".join(part for part in parts if part is not None)
