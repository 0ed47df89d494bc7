"""One attempt of a soak: server, load and judgement in step, until something is found or the budget is spent."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from crashlab.soak import driver as phases
from crashlab.soak import progress
from crashlab.soak.driver import LoadDriver
from crashlab.soak.exposure import Exposure, ExposureMeter
from crashlab.soak.judge import Judge
from crashlab.soak.outcome import STALL, Outcome
from crashlab.soak.probe import Reading
from crashlab.soak.progress import Progress, Sight, Status
from crashlab.soak.servers import ServerHandle, ServerView
from crashlab.soak.settings import SoakSettings

_RATE_SECONDS = 15.0
_RECENT = 16


class Snapshot(NamedTuple):
    """For the live view, at each look. Ages in seconds; ``note`` says what is waited for."""

    status: Status
    elapsed: float
    exposure: Exposure
    tokens_per_second: float
    in_flight: int
    last_byte_age: float | None
    errors: int
    rejected: int
    flagged: int
    faults: int
    dump_bytes: int
    attempt: int
    note: str = ""


Tell = Callable[[str, dict[str, Any]], None]
Show = Callable[[Snapshot], None]


class Attempt:
    """:meth:`run` it once. ``tell`` writes an event before anything is done about it."""

    def __init__(
        self,
        settings: SoakSettings,
        server: ServerHandle,
        load: LoadDriver,
        tell: Tell,
        show: Show,
        *,
        number: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._server, self._load = settings, server, load
        self._tell, self._show, self._clock, self._number = tell, show, clock, number
        self._began = clock()
        self._progress = Progress(self._began, settings.limits)
        self._judge = Judge(settings, load, tell)
        self._meter = ExposureMeter()
        self._loading = False
        self._state = progress.STARTING
        self._rate: list[tuple[float, int]] = []
        self._seen: Reading | None = None

    @property
    def exposure(self) -> Exposure:
        """So far."""
        return self._meter.total(self._load.board)

    def run(self) -> Outcome:
        """Load until there is an outcome; the server has then been ended, if it is ours."""
        self._load.start()
        outcome = None
        while outcome is None:
            view = self._server.step(0.25)
            outcome = self._look(view, self._clock())
        outcome = self._complete(outcome)._replace(ours=view.ended is None)
        self._tell("soak-ending", {"outcome": outcome.kind, "why": outcome.why})
        if outcome.kind == STALL:
            self._server.take_evidence(outcome.why)
        self._load.stop()
        self._server.stop(outcome.kind)
        return outcome

    def _look(self, view: ServerView, now: float) -> Outcome | None:
        load = self._load
        reading = load.probe.latest if load.probe is not None else None
        if load.phase != phases.WAITING and load.ready is not None and not self._loading:
            self._loading = True
            self._meter.begin(now)
            self._tell("soak-ready", {"seconds": round(now - self._began, 1), **load.ready._asdict()})
        fresh = reading is not None and (self._seen is None or reading.at > self._seen.at)
        if self._loading:
            counters = reading.counters if fresh and reading is not None else None
            self._meter.see(now, counters, reading.at if reading is not None else None)
        self._seen = reading
        status = self._progress.see(self._sight(view, reading, now))
        if status.state != self._state:
            self._tell("soak-state", {"from": self._state, "to": status.state, "why": status.why})
            self._state = status.state
        self._show(self._snapshot(view, status, now))
        return self._judge.look(
            view,
            status,
            now,
            waited=None if self._loading else now - self._began,
            interrupted=self._server.interrupted(),
            exposure=self.exposure,
        )

    def _sight(self, view: ServerView, reading: Reading | None, now: float) -> Sight:
        load = self._load
        flights = load.board.in_flight()
        counters = reading.counters if reading is not None else None
        return Sight(
            now=now,
            ready=self._loading,
            alive=view.ended is None,
            dumping=view.dumping,
            in_flight=flights.requests,
            unanswered=flights.waiting,
            oldest=flights.oldest,
            client_bytes=load.board.bytes,
            primary=counters.primary if counters is not None else None,
            secondary=counters.secondary if counters is not None else None,
            running=counters.get("running") if counters is not None else None,
            asleep=counters.asleep if counters is not None else None,
            failing=load.board.failures_in_a_row if flights.requests == flights.waiting else 0,
        )

    def _complete(self, outcome: Outcome) -> Outcome:
        outcome = outcome._replace(notes=self._judge.notes(outcome))
        if not self._loading:
            return outcome
        exposure = self.exposure
        return outcome._replace(
            exposure=exposure.fields(), exposure_words=exposure.words(), load=self._load_state()
        )

    def _load_state(self) -> dict[str, Any]:
        board = self._load.board
        flights = board.in_flight()
        counters = self._seen.counters if self._seen is not None else None
        shapes: dict[str, int] = {}
        for record in list(board.recent)[-_RECENT:]:
            shapes[record.shape] = shapes.get(record.shape, 0) + 1
        state: dict[str, Any] = {
            "in_flight": flights.requests,
            "unanswered": flights.waiting,
            "prompt_chars": flights.prompt_chars,
            "running": counters.get("running") if counters is not None else None,
            "waiting": counters.get("waiting") if counters is not None else None,
            "shapes": shapes,
            "errors": dict(board.errors),
            "state": self._state,
        }
        return {key: value for key, value in state.items() if value is not None}

    def _snapshot(self, view: ServerView, status: Status, now: float) -> Snapshot:
        board, load = self._load.board, self._load
        exposure = self.exposure
        return Snapshot(
            status,
            now - self._began,
            exposure,
            self._tokens_per_second(now, exposure),
            len(board.flights),
            None if board.last_byte is None else now - board.last_byte,
            exposure.failed,
            board.rejected,
            board.flagged,
            len(view.faults),
            view.dump_bytes,
            self._number,
            f"waiting for a first answer: {load.not_ready}" if not self._loading else "",
        )

    def _tokens_per_second(self, now: float, exposure: Exposure) -> float:
        """Over the last quarter of a minute; by the server's count where it has one."""
        counters = self._seen.counters if self._seen is not None else None
        counted = counters.get("generation_tokens") if counters is not None else None
        self._rate.append((now, int(counted) if counted is not None else exposure.tokens))
        while len(self._rate) > 2 and now - self._rate[0][0] > _RATE_SECONDS:
            self._rate.pop(0)
        (then, before), (_, tokens) = self._rate[0], self._rate[-1]
        return max(0, tokens - before) / (now - then) if now > then else 0.0
