"""When is a soak over, and why? Looks at server, load and state; acts on nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crashlab.postmortem.words import counted
from crashlab.soak import progress
from crashlab.soak.driver import LoadDriver
from crashlab.soak.exposure import Exposure, duration
from crashlab.soak.outcome import (
    CLEAN,
    DIED,
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
from crashlab.soak.settings import SoakSettings

_HOPELESS = 30
_GONE_SECONDS = 20.0
_FINAL_SECONDS = 10.0


class Judge:
    """:meth:`look` gives the outcome once there is one. ``stalls`` counts those seen so far."""

    def __init__(
        self, settings: SoakSettings, load: LoadDriver, tell: Callable[[str, dict[str, Any]], None]
    ) -> None:
        self.stalls = 0
        self._settings, self._load, self._tell = settings, load, tell
        self._stalled = False

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
        if view.ended is not None:
            if waited is not None and not view.faults and not interrupted:
                return Outcome(NEVER_READY, f"{view.ended} before it answered ({load.not_ready})")
            if interrupted and not view.faults:
                return Outcome(INTERRUPTED, _interrupted_words(exposure, waited))
            return Outcome(FAULT if view.faults else DIED, view.ended)
        if view.dumping:
            return None
        if interrupted:
            return Outcome(INTERRUPTED, _interrupted_words(exposure, waited))
        if waited is not None:
            return self._still_starting(waited)
        if (bad := load.garbage()) is not None:
            return Outcome(GARBAGE, bad, examples=self._examples())
        if (found := self._stall(status) or self._gone(now)) is not None:
            return found
        return self._spent(exposure)

    def notes(self, outcome: Outcome) -> tuple[str, ...]:
        """What else is worth telling: canaries, muted detectors, findings, stalls."""
        load, notes = self._load, []
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
            return Outcome(NEVER_READY, f"it refuses a first request: {load.not_ready}")
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

    def _gone(self, now: float) -> Outcome | None:
        """A server whose process we do not see, or that lives on without its engine: only failures."""
        board = self._load.board
        if board.failures_in_a_row < _HOPELESS:
            return None
        last = board.recent[-1] if board.recent else None
        what = (
            " ".join(str(v) for v in (last.error, last.status, last.detail) if v) if last is not None else ""
        )
        count = board.failures_in_a_row
        if board.succeeded == 0:
            return Outcome(REFUSES, f"{counted(count, 'request')} failed and none succeeded: {what}"[:400])
        if board.last_success is not None and now - board.last_success >= _GONE_SECONDS:
            return Outcome(DIED, f"it answers no request any more; the last {count} failed: {what}"[:400])
        return None

    def _spent(self, exposure: Exposure) -> Outcome | None:
        load = self._load
        if not load.alive:
            if load.problem is not None:
                return Outcome(LOAD_FAILED, load.problem)
            return Outcome(CLEAN, f"all requests were sent: {exposure.words()}")
        if (spent := self._settings.budget.spent(exposure)) is not None:
            return Outcome(CLEAN, f"the budget of {spent} is spent: {exposure.words()}")
        return None

    def _examples(self) -> tuple[str, ...]:
        return tuple(e for f in self._load.watch.findings if f.certain for e in f.examples)[:3]


def _interrupted_words(exposure: Exposure, waited: float | None) -> str:
    if waited is not None:
        return "interrupted before the server was ready"
    return f"interrupted by the user: {exposure.words()}"
