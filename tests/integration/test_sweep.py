"""``crashlab sweep`` as a user runs it: real processes, real load, the demo server's planted bug, and kill -9."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

from crashlab.sweep import journal, leftovers
from tests.support.demosweep import GUILTY, IGNORED, PLAN, demo_command, start

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def _finish(folder: Path, arguments: list[str], seconds: float = 800) -> tuple[int, dict[str, object]]:
    process = start(folder, arguments, folder / "log")
    out, _ = process.communicate(timeout=seconds)
    return process.returncode, json.loads(out)


def _named(result: dict[str, object]) -> set[str]:
    findings = result["findings"]
    assert isinstance(findings, dict)
    return {
        item["arm"].partition("=")[0]
        for item in findings["keys"][0]["comparisons"]
        if item["reading"] == "evidence"
    }


@pytest.mark.timeout(1500)
def test_a_sweep_that_is_killed_again_and_again_ends_with_the_right_two_levers(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    dice = random.Random(os.getpid())
    first = ["--json", "--out", "sweep", "plan.toml", "--", *demo_command()]
    for _ in range(6):
        process = start(tmp_path, first, tmp_path / "log")
        time.sleep(dice.uniform(0.3, 9.0))
        if dice.random() < 0.5:
            os.kill(process.pid, signal.SIGKILL)  # the run goes on, and is taken over
        else:
            _kill_all(process.pid, tmp_path / "sweep")  # as when the machine loses its power
        process.communicate()
    code, result = _finish(tmp_path, first)
    log = (tmp_path / "log").read_text()
    assert code == 0, log
    if _named(result) != set(GUILTY):
        # By its own stated level one sweep in forty misses a lever, or names one too many: not twice in a row.
        again = tmp_path / "again"
        again.mkdir()
        (again / "plan.toml").write_text(PLAN)
        assert _named(_finish(again, first)[1]) == set(GUILTY), log + (again / "log").read_text()
    runs = result["runs"]
    assert isinstance(runs, list)
    assert {run["outcome"] for run in runs if run["arm"].startswith(IGNORED)} == {"not_applied"}
    assert len({(run["arm"], run["number"]) for run in runs}) == len(runs)
    record = journal.read(str(tmp_path / "sweep"))
    assert not record.open
    for one in record.started.values():
        assert leftovers.marked(one.token) == []
    before = len(record.started)
    code, again = _finish(tmp_path, ["--json", "sweep"], 60)
    assert code == 0
    assert again["runs"] == runs
    assert len(journal.read(str(tmp_path / "sweep")).started) == before


def _kill_all(pid: int, folder: Path) -> None:
    os.kill(pid, signal.SIGKILL)
    for one in journal.read(str(folder)).open:
        for child in leftovers.marked(one.token):
            try:
                os.kill(child, signal.SIGKILL)
            except ProcessLookupError:
                continue


@pytest.mark.timeout(300)
def test_ctrl_c_ends_the_run_that_is_under_way_and_the_same_command_goes_on(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    arguments = ["--json", "--out", "sweep", "plan.toml", "--", *demo_command(10_000_000)]
    process = start(tmp_path, arguments, tmp_path / "log")
    while not journal.read(str(tmp_path / "sweep")).started:
        time.sleep(0.2)
    time.sleep(4.0)
    os.kill(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    record = journal.read(str(tmp_path / "sweep"))
    assert not record.open
    assert not record.runs
    assert "goes on" in (tmp_path / "log").read_text()
