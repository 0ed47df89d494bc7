"""Budgets, exposure, deadlines, canaries, URLs, the board."""

from __future__ import annotations

import contextlib
import signal
import socket
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.errors import CrashlabError, UsageError
from crashlab.soak import classes
from crashlab.soak.board import Board, Flight
from crashlab.soak.budget import Budget, parse_count, parse_duration, parse_range
from crashlab.soak.canary import PROMPTS, Canaries, canary_asks, common_prefix
from crashlab.soak.deadlines import Deadlines, overdue, sweep
from crashlab.soak.exposure import Exposure, ExposureMeter, duration
from crashlab.soak.hangup import LoadSignals
from crashlab.soak.metrics import Counters
from crashlab.soak.record import Record, begin
from crashlab.soak.serverurl import listens, plain_url, url_of

ASK = canary_asks(0)[0]
GOOD = ["fine words here"] * len(PROMPTS)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("50m", 3000), ("1h30m", 5400), ("2d", 172800), ("1.5h", 5400)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "count"), [("5000", 5000), ("20k", 20_000), ("2M", 2_000_000), ("1.5k", 1500)]
)
def test_counts(text: str, count: int) -> None:
    assert parse_count(text) == count


@pytest.mark.parametrize(
    ("text", "pair"), [("64:1024", (64, 1024)), ("8k", (8000, 8000)), ("1:2k", (1, 2000))]
)
def test_ranges(text: str, pair: tuple[int, int]) -> None:
    assert parse_range(text) == pair


@pytest.mark.parametrize("text", ["", "h", "5x", "1h 5", "-3", "m5"])
def test_what_is_no_duration_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError):
        parse_duration(text)


@pytest.mark.parametrize("text", ["", "a:b", "9:3", "0:5", "1:2:3", "-1:4"])
def test_what_is_no_range_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError):
        parse_range(text)


@settings(deadline=None)
@given(st.text(max_size=20))
def test_any_text_is_a_value_or_a_crashlab_error(text: str) -> None:
    for parse in (parse_duration, parse_count, parse_range):
        with contextlib.suppress(CrashlabError):
            parse(text)


def test_a_budget_is_spent_by_whichever_limit_comes_first() -> None:
    budget = Budget(60.0, 1000, 50)
    assert budget.spent(Exposure(59.0, 999, 49)) is None
    assert budget.spent(Exposure(60.0)) == "1m 00s of load"
    assert budget.spent(Exposure(1.0, 1000)) == "1,000 engine steps"
    assert budget.spent(Exposure(1.0, None, 50)) == "50 requests"
    assert Budget().spent(Exposure(1e9, 10**9, 10**9)) is None


def test_what_is_left_of_a_budget_after_an_attempt() -> None:
    left = Budget(60.0, 1000, 50).left(Exposure(20.0, 1500, 10))
    assert left == Budget(40.0, 0, 40)
    assert Budget(requests=50).left(Exposure(20.0, None, 40, failed=30)) == Budget(requests=40)
    assert Budget(requests=10).spent(Exposure(20.0, None, 40, failed=31)) is None
    assert Budget().left(Exposure(5.0, 5, 5)) == Budget()


def test_exposure_counts_from_where_the_load_found_the_counters_and_survives_a_restart() -> None:
    meter, board = ExposureMeter(), Board()
    meter.begin(100.0)
    for now, steps in ((101.0, 5000.0), (102.0, 5100.0), (103.0, 40.0), (104.0, 90.0)):
        meter.see(now, Counters({"engine_steps": steps}))
    total = meter.total(board)
    assert (total.engine_steps, total.seconds, total.prompt_tokens) == (190, 4.0, None)


def test_without_metrics_steps_are_unknown_and_not_zero() -> None:
    meter = ExposureMeter()
    meter.begin(0.0)
    meter.see(9.0, None)
    total = meter.total(Board())
    assert total.engine_steps is None
    assert "engine_steps" not in total.fields()
    assert "steps" not in total.words()


def test_exposures_add_up() -> None:
    total = Exposure(10.0, None, 5, 1, 50, 7).plus(Exposure(20.0, 9, 5, 0, 50, None))
    assert total == Exposure(30.0, 9, 10, 1, 100, 7)
    assert total.fields()["hours"] == round(30 / 3600, 6)


@pytest.mark.parametrize(("seconds", "text"), [(5, "5 s"), (65, "1m 05s"), (3723, "1h 02m")])
def test_durations_for_people(seconds: float, text: str) -> None:
    assert duration(seconds) == text


LIMITS = Deadlines(connect=5.0, first=20.0, chunk=10.0, total=100.0)


def flight(*, connected: bool = True, first: float | None = None, last: float | None = None) -> Flight:
    one = Flight(ASK, 0.0)
    one.connected, one.first, one.last = connected, first, last
    return one


@pytest.mark.parametrize(
    ("one", "now", "error"),
    [
        (flight(connected=False), 4.9, None),
        (flight(connected=False), 5.0, classes.TIMEOUT_CONNECT),
        (flight(), 19.0, None),
        (flight(), 20.0, classes.TIMEOUT_FIRST),
        (flight(first=1.0, last=50.0), 59.0, None),
        (flight(first=1.0, last=50.0), 60.0, classes.TIMEOUT_CHUNK),
        (flight(first=1.0, last=99.9), 100.0, classes.TIMEOUT_TOTAL),
    ],
)
def test_each_stage_has_its_own_deadline(one: Flight, now: float, error: str | None) -> None:
    assert overdue(one, LIMITS, now) == error


def test_a_sweep_marks_each_overdue_request_once() -> None:
    flights = [flight(), flight(first=1.0, last=29.0)]
    assert sweep(flights, LIMITS, 30.0) == [flights[0]]
    assert sweep(flights, LIMITS, 31.0) == []
    assert flights[0].doom == classes.TIMEOUT_FIRST


def test_gaps_between_pieces_are_remembered() -> None:
    one = flight()
    for now in (1.0, 1.5, 9.0, 9.1):
        one.heard(now, 10)
    assert (one.first, one.last, one.gap, one.bytes) == (1.0, 9.1, 7.5, 40)


def test_the_board_tells_what_is_in_flight_and_who_waits_longest() -> None:
    board = Board()
    board.flights = {1: flight(), 2: flight(first=1.0, last=3.0)}
    found = board.in_flight()
    assert (found.requests, found.waiting, found.oldest) == (2, 1, 0.0)
    assert found.prompt_chars == 2 * ASK.prompt_chars
    assert Board().in_flight().oldest is None


def record(error: str | None) -> Record:
    return begin(ASK, 0.0, "t")._replace(error=error)


def test_failures_in_a_row_end_with_a_success_and_with_what_the_client_chose() -> None:
    board = Board()
    for error in ("reset", "http", "reset"):
        board.note(record(error), 1.0)
    assert board.failures_in_a_row == 3
    board.note(record(classes.CANCELLED), 2.0)
    assert board.failures_in_a_row == 0
    board.note(record(classes.REJECTED), 2.0)
    assert (board.failures_in_a_row, board.rejected) == (0, 1)
    assert dict(board.unserved) == {"rejected": 1}


def test_a_board_remembers_a_bounded_number_of_records() -> None:
    board = Board()
    for _ in range(1000):
        board.note(record(None), 1.0)
    assert (len(board.recent), board.succeeded) == (64, 1000)


def test_canaries_measure_the_noise_first_and_hold_later_rounds_against_it() -> None:
    canaries = Canaries()
    assert canaries.see(0, list(GOOD)) is None
    assert canaries.see(1, ["fine words there", *GOOD[1:]]) is None
    assert canaries.noise == pytest.approx(11 / 16)
    assert canaries.see(2, list(GOOD)) is None
    words = canaries.words()
    assert words is not None
    assert "100%" in words
    assert "69%" in words


def test_canaries_that_collapse_are_garbage() -> None:
    canaries = Canaries()
    for number in range(2):
        canaries.see(number, list(GOOD))
    found = canaries.see(2, ["!" * 64] * len(PROMPTS))
    assert found is not None
    assert "collapsed" in found


def test_canaries_that_were_collapsed_from_the_start_prove_nothing() -> None:
    canaries = Canaries()
    for number in range(5):
        assert canaries.see(number, ["the " * 40] * len(PROMPTS)) is None


def test_all_canaries_lost_in_two_rounds_are_garbage_and_in_one_are_not() -> None:
    canaries = Canaries()
    for number in range(2):
        canaries.see(number, list(GOOD))
    other = ["something else altogether"] * len(PROMPTS)
    assert canaries.see(2, other) is None
    assert canaries.see(3, other) is not None


def test_noisy_canaries_that_differ_are_no_garbage() -> None:
    canaries = Canaries()
    canaries.see(0, list(GOOD))
    canaries.see(1, ["zzz"] * len(PROMPTS))
    for number in range(2, 6):
        assert canaries.see(number, ["yyy"] * len(PROMPTS)) is None


def test_canaries_that_failed_at_first_are_asked_again() -> None:
    canaries = Canaries()
    assert canaries.see(0, [None, *GOOD[1:]]) is None
    assert canaries.see(1, list(GOOD)) is None
    assert canaries.noise is None
    assert canaries.words() is None


def test_common_prefixes() -> None:
    assert common_prefix("", "") == 1.0
    assert common_prefix("abc", "abd") == pytest.approx(2 / 3)
    assert common_prefix("abc", "") == 0.0


@pytest.mark.parametrize(
    ("argv", "url"),
    [
        (("vllm", "serve", "m"), "http://127.0.0.1:8000"),
        (("vllm", "serve", "m", "--port", "9001"), "http://127.0.0.1:9001"),
        (("vllm", "serve", "m", "--port=9001", "--host", "0.0.0.0"), "http://127.0.0.1:9001"),
        (("python", "-m", "sglang.launch_server"), "http://127.0.0.1:30000"),
        (("llama-server", "-m", "x", "--host=::1"), "http://[::1]:8080"),
        (("vllm", "serve", "m", "--port", "auto"), "http://127.0.0.1:8000"),
        (("serve", "--port"), "http://127.0.0.1:8000"),
    ],
)
def test_where_a_server_will_listen(argv: tuple[str, ...], url: str) -> None:
    assert url_of(argv) == url


def _answered(board: Board, now: float) -> None:
    record = begin(ASK, now, "2026-11-30T00:00:00Z")._replace(tokens=6)
    board.note(record, now)


def test_steps_are_unknown_when_no_reading_is_younger_than_the_first_answer() -> None:
    meter, board = ExposureMeter(), Board()
    meter.begin(100.0)
    meter.see(100.1, Counters({"engine_steps": 0.0, "prompt_tokens": 0.0}), 100.0)
    _answered(board, 100.4)
    meter.see(100.6, None, 100.0)
    total = meter.total(board)
    assert (total.engine_steps, total.requests, total.tokens) == (None, 1, 6)
    assert "engine_steps" not in total.fields()
    meter.see(101.1, Counters({"engine_steps": 30.0}), 101.0)
    assert meter.total(board).engine_steps == 30


def test_a_reading_of_before_the_first_answer_does_not_count_for_it() -> None:
    meter, board = ExposureMeter(), Board()
    meter.begin(100.0)
    for at, steps in ((100.0, 0.0), (101.0, 4.0)):
        meter.see(at, Counters({"engine_steps": steps}), at)
    assert meter.total(board).engine_steps == 4
    _answered(board, 101.5)
    assert meter.total(board).engine_steps is None


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://h:8000/", "http://h:8000"),
        ("http://h:8000/v1/", "http://h:8000"),
        ("h:8000", "http://h:8000"),
        ("https://h/prefix", "https://h/prefix"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_an_address_is_made_plain(text: str, url: str) -> None:
    assert plain_url(text) == url


@pytest.mark.parametrize(
    "text",
    [
        "",
        "http://",
        "ftp://x",
        "http://h:99999",
        "http://h:0",
        "http://[::1",
        "a b",
        "http://h/?x=1",
        "foo",
        "foo/v1",
    ],
)
def test_what_is_no_address_is_refused_with_the_next_step(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        plain_url(text)
    assert caught.value.hint is not None
    assert "http://HOST:PORT" in caught.value.hint


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_a_usage_error(text: str) -> None:
    with suppress(UsageError):
        assert plain_url(text).startswith(("http://", "https://"))


def test_whether_something_listens_is_seen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert listens(f"http://127.0.0.1:{port}") == f"127.0.0.1:{port}"
    assert listens(f"http://127.0.0.1:{port}") is None


def test_a_hangup_stops_a_load_but_not_under_nohup() -> None:
    for before, expected in ((signal.SIG_DFL, [signal.SIGTERM]), (signal.SIG_IGN, [])):
        old = signal.signal(signal.SIGHUP, before)
        try:
            with LoadSignals() as box:
                signal.raise_signal(signal.SIGHUP)
                assert box.take() == expected
                signal.raise_signal(signal.SIGINT)
                assert box.take() == [signal.SIGINT]
        finally:
            signal.signal(signal.SIGHUP, old)


@pytest.mark.parametrize(
    ("exposure", "words"),
    [
        (Exposure(65.0, 1, 1, 0, 1), "1m 05s, 1 engine step, 1 request, 1 token"),
        (Exposure(5.0, None, 2, 0, 0), "5 s, 2 requests, 0 tokens"),
    ],
)
def test_exposure_in_words_knows_one_and_many(exposure: Exposure, words: str) -> None:
    assert exposure.words() == words
