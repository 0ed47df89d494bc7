"""When an attempt ends and with which outcome: with a scripted server view, board and clock."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from crashlab.soak import outcome as kinds
from crashlab.soak.attempt import Attempt, Snapshot
from crashlab.soak.board import Board, Flight
from crashlab.soak.budget import Budget
from crashlab.soak.canary import Canaries, canary_asks
from crashlab.soak.driver import LOADING, WAITING
from crashlab.soak.garbagewatch import GarbageWatch
from crashlab.soak.metrics import Counters
from crashlab.soak.outcome import Outcome
from crashlab.soak.probe import Reading
from crashlab.soak.progress import Limits
from crashlab.soak.ready import Ready
from crashlab.soak.record import begin
from crashlab.soak.servers import ServerView
from crashlab.soak.settings import SoakSettings

ASK = canary_asks(0)[0]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class FakeProbe:
    def __init__(self) -> None:
        self.latest: Reading | None = None


class FakeLoad:
    """As much of a load driver as an attempt looks at."""

    def __init__(self) -> None:
        self.board = Board()
        self.watch = GarbageWatch()
        self.canaries = Canaries()
        self.probe: FakeProbe | None = FakeProbe()
        self.external: Any = None
        self.phase = LOADING
        self.ready: Ready | None = Ready("m", 100, None, None)
        self.not_ready = "nobody listens"
        self.final = False
        self.problem: str | None = None
        self.alive = True
        self.bad: str | None = None
        self.calls: list[str] = []

    def start(self) -> None:
        self.calls.append("start")

    def stop(self) -> None:
        self.calls.append("stop")

    def garbage(self) -> str | None:
        return self.bad


class FakeServer:
    """Plays one function a second; an attempt that does not end is an error."""

    def __init__(self, clock: Clock, play: Any) -> None:
        self._clock, self._play = clock, play
        self.calls: list[str] = []
        self.stop_asked = False

    def step(self, seconds: float) -> ServerView:
        self._clock.now += 1.0
        assert self._clock.now < 4000.0, "the attempt does not end"
        return self._play(self._clock.now - 1000.0) or ServerView()

    def interrupted(self) -> bool:
        return self.stop_asked

    def take_evidence(self, reason: str) -> None:
        self.calls.append("evidence")

    def stop(self, reason: str) -> None:
        self.calls.append(f"stop {reason}")


class Stage:
    def __init__(self, **settings: Any) -> None:
        self.clock, self.load = Clock(), FakeLoad()
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.shown: list[Snapshot] = []
        self.settings = SoakSettings("http://x", limits=Limits(stall=10.0), **settings)

    def run(self, play: Any) -> Outcome:
        self.server = FakeServer(self.clock, play)
        attempt = Attempt(
            self.settings,
            self.server,
            self.load,  # type: ignore[arg-type]
            lambda kind, fields: self.events.append((kind, fields)),
            self.shown.append,
            clock=self.clock,
        )
        return attempt.run()

    def tokens(self, steps: float) -> None:
        """The metrics move."""
        counters = Counters({"generation_tokens": steps * 10, "engine_steps": steps, "running": 2.0})
        assert self.load.probe is not None
        self.load.probe.latest = Reading(self.clock.now, counters, 200)
        self.load.board.bytes += 1

    def fly(self) -> None:
        """A request is under way since now."""
        self.load.board.flights[1] = Flight(ASK, self.clock.now)

    def names(self) -> list[str]:
        return [name for name, _ in self.events]


def test_a_spent_budget_is_a_clean_end_with_its_exposure() -> None:
    stage = Stage(budget=Budget(steps=50))
    outcome = stage.run(lambda at: stage.tokens(at * 10))
    assert outcome.kind == kinds.CLEAN
    assert outcome.exposure["engine_steps"] >= 50
    assert "engine steps" in outcome.exposure_words
    assert outcome.ours
    assert stage.server.calls == ["stop clean"]
    assert stage.load.calls == ["start", "stop"]


def test_a_stall_takes_evidence_before_the_load_and_the_server_end() -> None:
    stage = Stage()

    def play(at: float) -> None:
        if at < 5:
            stage.tokens(at)
            stage.fly()

    outcome = stage.run(play)
    assert outcome.kind == kinds.STALL
    assert "while /health says 200" in outcome.why
    assert stage.server.calls == ["evidence", "stop stall"]
    assert outcome.load["in_flight"] == 1
    states = [fields["to"] for name, fields in stage.events if name == "soak-state"]
    assert states[-1] == "STALLED"


def test_a_stall_that_is_only_noted_ends_and_the_run_goes_on() -> None:
    stage = Stage(on_stall="note", budget=Budget(seconds=60.0))

    def play(at: float) -> None:
        if at < 5 or at > 30:
            stage.tokens(at)
        if at < 5:
            stage.fly()

    outcome = stage.run(play)
    assert outcome.kind == kinds.CLEAN
    assert [n for n in stage.names() if n.startswith("soak-stall")] == ["soak-stall", "soak-stall-ended"]
    assert any("1 stall" in note for note in outcome.notes)


@pytest.mark.parametrize(
    ("faults", "kind"), [(("driver: Detected an exception",), kinds.FAULT), ((), kinds.DIED)]
)
def test_a_server_that_ends_died_and_with_fault_lines_faulted(faults: tuple[str, ...], kind: str) -> None:
    stage = Stage()
    outcome = stage.run(
        lambda at: ServerView("the server ended with exit code 0", faults) if at > 3 else None
    )
    assert (outcome.kind, outcome.why) == (kind, "the server ended with exit code 0")
    assert not outcome.ours


def test_nothing_is_decided_while_a_dump_is_being_written() -> None:
    stage = Stage(budget=Budget(seconds=2.0))
    stage.load.bad = "garbage"

    def play(at: float) -> ServerView:
        stage.server.stop_asked = True
        return ServerView(dumping=at < 50, dump_bytes=7)

    outcome = stage.run(play)
    assert stage.clock.now - 1000.0 == 50.0
    assert outcome.kind == kinds.INTERRUPTED
    assert "DUMPING" in {s.status.state for s in stage.shown}


def test_garbage_ends_with_examples() -> None:
    stage = Stage()
    for i in range(12):
        stage.load.watch.see(f"0/{i}", "t", "!" * 80, 40, 1.0, "length")
    stage.load.bad = stage.load.watch.findings[0].what
    outcome = stage.run(lambda at: None)
    assert outcome.kind == kinds.GARBAGE
    assert outcome.examples[0].startswith("!!!")


def test_a_server_that_never_answers_is_never_ready_after_its_time() -> None:
    stage = Stage(ready_within=30.0)
    stage.load.phase, stage.load.ready, stage.load.probe = WAITING, None, None
    outcome = stage.run(lambda at: None)
    assert outcome.kind == kinds.NEVER_READY
    assert "nobody listens" in outcome.why
    assert outcome.exposure == {}
    assert "waiting for a first answer" in stage.shown[-1].note


def test_a_server_that_dies_while_starting_was_never_ready() -> None:
    stage = Stage()
    stage.load.phase, stage.load.ready, stage.load.probe = WAITING, None, None
    outcome = stage.run(lambda at: ServerView("the server ended with exit code 1"))
    assert outcome.kind == kinds.NEVER_READY
    assert "exit code 1" in outcome.why


def test_a_fault_while_starting_is_a_fault() -> None:
    stage = Stage()
    stage.load.phase, stage.load.ready, stage.load.probe = WAITING, None, None
    outcome = stage.run(lambda at: ServerView("the server ended with exit code 0", ("dump: x",)))
    assert outcome.kind == kinds.FAULT


def test_a_server_that_refuses_the_model_is_not_waited_for() -> None:
    stage = Stage(ready_within=3000.0)
    stage.load.phase, stage.load.ready, stage.load.probe = WAITING, None, None
    stage.load.final, stage.load.not_ready = True, "HTTP 404: no such model"
    outcome = stage.run(lambda at: None)
    assert outcome.kind == kinds.NEVER_READY
    assert stage.clock.now < 1020.0


@pytest.fixture(autouse=True)
def listening(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where something takes connections; empty it, and nothing does."""
    places = ["http://x"]
    monkeypatch.setattr("crashlab.soak.judge.listens", lambda url: "x:80" if url in places else None)
    return places


def note(stage: Stage, *errors: str | None) -> None:
    for error in errors:
        record = begin(ASK, 0.0, "t")._replace(error=error, detail="why")
        stage.load.board.note(record, stage.clock.now)


def at(second: float, action: Callable[[], object]) -> Callable[[float], None]:
    """A play in which this happens once."""

    def play(now: float) -> None:
        if now == second:
            action()

    return play


@pytest.mark.parametrize("errors", [("reset", "refused", "refused"), ("reset",)])
def test_a_budget_that_ends_after_the_server_died_is_no_clean_end(
    errors: tuple[str, ...], listening: list[str]
) -> None:
    listening.clear()
    stage = Stage(budget=Budget(seconds=20.0))
    outcome = stage.run(at(15.0, lambda: note(stage, None, None, *errors)))
    assert outcome.kind == kinds.DIED
    assert outcome.why.startswith("x:80 takes no connection any more; the last")
    assert stage.server.calls == ["stop died"]


def test_all_requests_sent_to_a_server_that_died_meanwhile_is_no_clean_end(listening: list[str]) -> None:
    listening.clear()
    stage = Stage()
    note(stage, None, "refused", "refused")
    stage.load.alive = False
    assert stage.run(lambda at: None).kind == kinds.DIED


def test_a_budget_that_ends_in_errors_is_inconclusive_and_says_how_many() -> None:
    stage = Stage(budget=Budget(seconds=20.0))
    outcome = stage.run(at(15.0, lambda: note(stage, *(None,) * 35, *("http",) * 30)))
    assert outcome.kind == kinds.FAILING
    assert "30 of 65 requests failed (http 30)" in outcome.why
    assert "the last 30 requests all failed" in outcome.why


@pytest.mark.parametrize(
    ("errors", "kind"),
    [
        (("http", "http", "http", None), kinds.FAILING),  # most of them
        (("http", None, None, None), kinds.CLEAN),
        (("rejected", "rejected", None), kinds.CLEAN),  # overload that recovers
        (("rejected",) * 9, kinds.CLEAN),
        (("rejected",) * 40, kinds.FAILING),  # and overload that does not
        (("cancelled",) * 40, kinds.CLEAN),  # the client hung up on purpose
        (("http", "http", "cancelled", None, None), kinds.CLEAN),
        (("empty",) * 40, kinds.CLEAN),  # answered; that nothing is in it is for the garbage watch
    ],
)
def test_what_the_last_requests_came_to_decides_how_a_budget_ends(
    errors: tuple[str | None, ...], kind: str
) -> None:
    stage = Stage(budget=Budget(seconds=20.0))
    outcome = stage.run(at(10.0, lambda: note(stage, None, *errors)))
    assert outcome.kind == kind


def test_failures_of_a_clean_end_stand_in_its_first_sentence() -> None:
    stage = Stage(budget=Budget(seconds=20.0))
    outcome = stage.run(at(10.0, lambda: note(stage, "http", "rejected", None, None, None)))
    assert outcome.kind == kinds.CLEAN
    assert outcome.why.endswith("; 2 of 5 requests failed (http 1, rejected 1)")


def test_an_answer_under_way_shows_that_the_server_works() -> None:
    stage = Stage(budget=Budget(seconds=20.0))

    def streaming() -> None:
        note(stage, *(None,) * 9, "http", "http", "http", "http")
        stage.fly()
        stage.load.board.flights[1].heard(stage.clock.now, 5)

    assert stage.run(at(18.0, streaming)).kind == kinds.CLEAN


def test_failed_requests_do_not_use_up_a_budget_of_requests() -> None:
    stage = Stage(budget=Budget(requests=5))

    def play(at: float) -> None:
        note(stage, "http" if at < 20 else None)

    outcome = stage.run(play)
    assert (outcome.kind, stage.load.board.succeeded) == (kinds.FAILING, 5)
    assert "19 of 24 requests failed" in outcome.why


def test_a_server_that_only_turns_away_ends_a_budget_of_requests() -> None:
    stage = Stage(budget=Budget(requests=5))
    outcome = stage.run(lambda at: note(stage, "rejected", "rejected"))
    assert outcome.kind == kinds.FAILING
    assert "requests all failed (rejected" in outcome.why


def test_an_interrupt_says_how_many_requests_failed() -> None:
    stage = Stage()
    note(stage, None, "refused", "refused")
    outcome = stage.run(at(2.0, lambda: setattr(stage.server, "stop_asked", True)))
    assert outcome.kind == kinds.INTERRUPTED
    assert "2 of 3 requests failed (refused 2)" in outcome.why


def test_a_server_that_died_before_its_first_answer_has_died(listening: list[str]) -> None:
    listening.clear()
    stage = Stage()
    fail(stage, 30, succeeded=False)
    outcome = stage.run(lambda at: None)
    assert outcome.kind == kinds.DIED
    assert "takes no connection any more; the last 30 requests all failed" in outcome.why


def test_a_server_that_sent_tokens_and_then_only_errors_has_died() -> None:
    stage = Stage()
    stage.load.board.tokens = 528
    fail(stage, 30, succeeded=False)
    outcome = stage.run(lambda at: None)
    assert outcome.kind == kinds.DIED
    assert "answers no request any more" in outcome.why


def test_another_generators_end_looks_whether_the_server_is_still_there(listening: list[str]) -> None:
    listening.clear()
    stage = Stage(budget=Budget(seconds=5.0))
    stage.load.external = SimpleNamespace(runs=2, failed=1)
    assert stage.run(lambda at: None).kind == kinds.DIED
    stage.load.alive, stage.load.problem = False, "the load command failed 3 times at once (code 1): x"
    assert stage.run(lambda at: None).kind == kinds.DIED


def test_a_server_that_fails_each_request_is_neither_idle_nor_progressing() -> None:
    stage = Stage(budget=Budget(seconds=9.0))
    stage.run(at(3.0, lambda: note(stage, None, "refused", "refused", "refused")))
    assert [shown.status.state for shown in stage.shown][-1] == "FAILING"
    assert stage.shown[-1].status.why == "the last 3 requests all failed"


@pytest.mark.parametrize(
    ("why", "step"),
    [
        ("nobody listens on h:1", "check that the server runs"),
        ("it answers HTTP 404 to /v1/models: no OpenAI-compatible server", "speaks OpenAI's API"),
        ("it answers HTTP 404 to /v1/completions: no such model", "--model"),
        ("it answers HTTP 401 to /v1/models: no", "CRASHLAB_API_KEY"),
        ("the host foo is not known", "how the host is written"),
        ("no answer in time", "--ready-within"),
    ],
)
def test_a_server_that_never_became_ready_gets_its_next_step(why: str, step: str) -> None:
    stage = Stage(ready_within=5.0)
    stage.load.phase, stage.load.ready, stage.load.probe = WAITING, None, None
    stage.load.not_ready = why
    outcome = stage.run(lambda at: None)
    assert outcome.notes[0].startswith("What to do: ")
    assert step in outcome.notes[0]


def fail(stage: Stage, count: int, *, succeeded: bool) -> None:
    if succeeded:
        stage.load.board.note(begin(ASK, 0.0, "t"), stage.clock.now)
    for _ in range(count):
        record = begin(ASK, 0.0, "t")._replace(error="http", status=500, detail="EngineDeadError")
        stage.load.board.note(record, stage.clock.now)


def test_a_server_that_only_refuses_from_the_start_is_no_finding_about_faults() -> None:
    stage = Stage()
    fail(stage, 30, succeeded=False)
    outcome = stage.run(lambda at: None)
    assert outcome.kind == kinds.REFUSES
    assert "EngineDeadError" in outcome.why


def test_a_server_that_lives_on_without_its_engine_has_died() -> None:
    stage = Stage()
    fail(stage, 30, succeeded=True)
    outcome = stage.run(lambda at: None)
    assert outcome.kind == kinds.DIED
    assert "answers no request any more" in outcome.why


def test_a_load_that_has_sent_everything_ends_clean() -> None:
    stage = Stage()
    stage.load.alive = False
    assert stage.run(lambda at: None).kind == kinds.CLEAN


@pytest.mark.parametrize("loading", [True, False])
def test_a_load_that_fails_by_itself_says_why(loading: bool) -> None:
    stage = Stage()
    stage.load.alive, stage.load.problem = False, "the load command cannot be started"
    if not loading:
        stage.load.phase, stage.load.ready, stage.load.probe = WAITING, None, None
    outcome = stage.run(lambda at: None)
    assert (outcome.kind, outcome.why) == (kinds.LOAD_FAILED, "the load command cannot be started")


def test_an_interrupt_ends_with_what_was_done_so_far() -> None:
    stage = Stage()

    def play(at: float) -> None:
        stage.tokens(at)
        stage.server.stop_asked = at > 5

    outcome = stage.run(play)
    assert outcome.kind == kinds.INTERRUPTED
    assert "engine steps" in outcome.why


def test_the_rate_is_that_of_the_last_seconds() -> None:
    stage = Stage(budget=Budget(seconds=40.0))
    stage.run(lambda at: stage.tokens(at if at < 20 else 20 + (at - 20) * 3))
    assert stage.shown[10].tokens_per_second == pytest.approx(10.0, rel=0.2)
    assert stage.shown[-1].tokens_per_second == pytest.approx(30.0, rel=0.2)
