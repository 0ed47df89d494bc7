"""The load in its thread against the simulated server: readiness, loading, stopping, other generators."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crashlab.soak.budget import Budget
from crashlab.soak.deadlines import Deadlines
from crashlab.soak.driver import DONE, FAILED, LOADING, WAITING, LoadDriver
from crashlab.soak.settings import SoakSettings
from crashlab.soak.shapes import Sizes
from tests.unit.demo.test_demo_server import Demo, demo

SMALL = Sizes((4, 16), (4, 8))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Demo]:
    with demo(tmp_path) as one:
        yield one


def wait(condition: Callable[[], Any], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def driver_for(server: Demo, **fields: Any) -> tuple[LoadDriver, list[dict[str, Any]], list[dict[str, Any]]]:
    settings = SoakSettings(f"http://127.0.0.1:{server.port}", sizes=SMALL, clients=4, probe_interval=0.2)
    requests: list[dict[str, Any]] = []
    samples: list[dict[str, Any]] = []
    return LoadDriver(settings._replace(**fields), requests.append, samples.append), requests, samples


def test_a_request_budget_is_sent_to_the_end_and_each_request_logged(server: Demo) -> None:
    driver, requests, samples = driver_for(server, budget=Budget(requests=40), shape="fresh")
    driver.start()
    wait(lambda: not driver.alive)
    assert (driver.phase, driver.problem) == (DONE, None)
    assert driver.ready is not None
    assert (driver.ready.model, driver.ready.counted_by) == ("demo/recorded-h200", "tokenize")
    rows = [row for row in requests[1:] if row["lane"] >= 0]
    assert requests[0]["context"] == 4096
    assert len(rows) == driver.board.finished == 40
    assert all("error" not in row for row in rows)
    assert samples[0]["generation_tokens"] >= 0
    assert driver.garbage() is None


def test_stopping_hangs_up_at_once_and_leaves_records(server: Demo) -> None:
    long = Sizes((4, 8), (2000, 2000))
    driver, requests, _ = driver_for(server, shape="decode-heavy", sizes=long, canary_every=None)
    driver.start()
    wait(lambda: len(driver.board.flights) == 4 and driver.phase == LOADING)
    began = time.monotonic()
    driver.stop(60.0)
    assert time.monotonic() - began < 30.0, "answers of 2,000 tokens are not waited for"
    assert not driver.alive
    assert [row.get("error") for row in requests if row.get("lane", -1) >= 0] == ["stopped"] * 4


def test_a_driver_that_waits_for_readiness_can_be_stopped(server: Demo) -> None:
    driver, requests, _ = driver_for(server, url="http://127.0.0.1:9")
    driver.start()
    wait(lambda: "nobody listens" in driver.not_ready)
    assert driver.phase == WAITING
    driver.stop()
    assert not driver.alive
    assert requests == []


def test_a_model_that_is_not_there_is_final(server: Demo) -> None:
    driver, _, _ = driver_for(server, url=f"http://127.0.0.1:{server.port}/nothing")
    driver.start()
    wait(lambda: driver.final)
    driver.stop()
    assert "404" in driver.not_ready


def test_overdue_requests_are_cut_off_by_the_sweep(tmp_path: Path) -> None:
    with demo(tmp_path, "--scenario", "stall", "--after", "3") as stalled:
        driver, requests, _ = driver_for(
            stalled, deadlines=Deadlines(first=0.5, chunk=0.5), canary_every=None, shape="fresh"
        )
        driver.start()
        wait(lambda: driver.board.errors)
        driver.stop()
    errors = {row.get("error") for row in requests[1:]}
    assert errors <= {"timeout-first-byte", "timeout-chunk", "stopped", "cancelled"}
    assert errors & {"timeout-first-byte", "timeout-chunk"}


def test_garbage_is_told_while_loading(tmp_path: Path) -> None:
    with demo(tmp_path, "--scenario", "garbage", "--after", "60") as server:
        driver, _, _ = driver_for(server, shape="fresh", sizes=Sizes((4, 8), (40, 60)))
        driver.start()
        wait(driver.garbage)
        driver.stop()


def test_a_replay_that_cannot_be_read_fails_with_its_reason(server: Demo) -> None:
    driver, _, _ = driver_for(server, replay="/nonexistent")
    driver.start()
    wait(lambda: not driver.alive)
    assert driver.phase == FAILED
    assert "cannot be replayed" in (driver.problem or "")


def test_another_generator_is_run_again_and_again_and_ended(server: Demo) -> None:
    command = (
        sys.executable,
        "-c",
        "import sys; print('load', sys.argv[1:]); print('x' * 200000)",
        "{url}",
        "{model}",
    )
    driver, _, _ = driver_for(server, load_cmd=command)
    driver.start()
    wait(lambda: driver.external is not None and driver.external.runs >= 2)
    driver.stop()
    assert not driver.alive
    assert driver.external is not None
    assert driver.external.failed == 0
    assert driver.external.argv[-2:] == (f"http://127.0.0.1:{server.port}", "demo/recorded-h200")


def test_a_generator_that_ignores_the_request_to_end_is_killed(
    server: Demo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crashlab.soak.external._GRACE", 0.3)
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    driver, _, _ = driver_for(server, load_cmd=(sys.executable, "-c", code))
    driver.start()
    wait(lambda: driver.external is not None and driver.external.tail)
    began = time.monotonic()
    driver.stop(50.0)
    assert not driver.alive
    assert time.monotonic() - began < 40.0, "the command sleeps for 60 s"


@pytest.mark.parametrize(
    ("command", "words"),
    [(("false",), "failed 3 times at once"), (("/nonexistent/load",), "cannot be started")],
)
def test_a_generator_that_cannot_work_says_so(server: Demo, command: tuple[str, ...], words: str) -> None:
    driver, _, _ = driver_for(server, load_cmd=command)
    driver.start()
    wait(lambda: not driver.alive)
    assert driver.phase == FAILED
    assert words in (driver.problem or "")


def test_a_server_of_others_is_only_watched_and_any_signal_asks_to_stop() -> None:
    from crashlab.capture.signals import SignalBox
    from crashlab.soak.servers import Remote, ServerView

    with SignalBox() as box:
        remote = Remote(box)
        assert remote.step(0.01) == ServerView()
        assert not remote.interrupted()
        os.kill(os.getpid(), signal.SIGINT)
        remote.step(1.0)
        assert remote.interrupted()
        remote.take_evidence("nothing to take")
        remote.stop("not ours")
