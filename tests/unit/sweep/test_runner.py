"""The sweep's folder and journal: going on after any cut, nothing twice, nothing lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crashlab.errors import MissingTool, ToolFailed, UsageError
from crashlab.sweep import journal, leftovers
from crashlab.sweep.arraytask import run_task
from crashlab.sweep.backend import Local
from crashlab.sweep.execute import run_job
from crashlab.sweep.facts import (
    CLEAN,
    FAULT,
    INCONCLUSIVE,
    NEVER_READY,
    NOT_APPLIED,
    ArmRun,
    Effective,
    Exposure,
    Setting,
    SweepResult,
)
from crashlab.sweep.job import TOKEN, Job, job_of, ways_of
from crashlab.sweep.outcome import INTERRUPTED, finished, refused, result_of
from crashlab.sweep.overlay import prefix, prepared
from crashlab.sweep.probe import Server
from crashlab.sweep.runner import Sweep, SweepFolder, is_sweep, plan_of, result_from
from crashlab.sweep.schedule import CLEAN as CLOSED_CLEAN
from crashlab.sweep.schedule import DIFFERS, FAULTS, Task, standings
from crashlab.sweep.verdict import judge
from tests.support.demosweep import GUILTY, HARMLESS, IGNORED
from tests.support.fakesweep import FakeServers, leave_run, plan

OPTIONS = Server(
    frozenset({"-cc.cudagraph_mode", "--moe-backend", "--attention-backend", "--kv-cache-dtype",
               "--enable-prefix-caching"}), None
)  # fmt: skip


def go(folder: str, servers: FakeServers | None = None, slots: int = 1) -> tuple[SweepResult, list[str]]:
    said: list[str] = []
    chosen = plan()
    place = SweepFolder.open(folder, chosen, "/")
    try:
        backend = Local(slots, run=(servers or FakeServers()).run)
        return Sweep(chosen, place, backend, OPTIONS, said.append).go(), said
    finally:
        place.close()


def states(result: SweepResult) -> dict[str, str]:
    return {one.arm.name.partition("=")[0]: one.state for one in standings(plan(), result.runs)}


def expected(found: dict[str, str]) -> bool:
    return (
        all(found[lever] == CLOSED_CLEAN for lever in GUILTY)
        and all(found[lever] == FAULTS for lever in HARMLESS)
        and found[IGNORED] == DIFFERS
    )


def job(folder: Path, arm: str, run: int = 1) -> Job:
    chosen = plan()
    return job_of(
        chosen,
        ways_of(chosen, OPTIONS),
        Task(arm, 0, 5000, ""),
        run=run,
        folder=str(folder),
        cwd="/",
        token="t",
    )


@pytest.mark.parametrize("slots", [1, 3])
def test_a_sweep_finds_the_two_levers_and_the_one_that_did_not_take(tmp_path: Path, slots: int) -> None:
    result, said = go(str(tmp_path / "s"), slots=slots)
    assert expected(states(result)), "\n".join(said)
    named = {
        c.arm.partition("=")[0]
        for c in judge(result.arms, result.runs).keys[0].comparisons
        if c.reading == "evidence"
    }
    assert named == set(GUILTY)
    assert result.finished is True
    assert result.machines[0].facts["gpu"].value == "NVIDIA H200"


def test_a_finished_sweep_runs_nothing_again(tmp_path: Path) -> None:
    first, _ = go(str(tmp_path / "s"))
    servers = FakeServers()
    second, _ = go(str(tmp_path / "s"), servers)
    assert servers.made == []
    assert second.runs == first.runs


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.floats(0, 1), st.integers(0, 4))
def test_a_journal_cut_at_any_byte_leads_to_the_same_table(
    tmp_path_factory: pytest.TempPathFactory, share: float, gone: int
) -> None:
    """As after kill -9: the journal ends anywhere; what the runs left may be whole, torn or missing."""
    folder = tmp_path_factory.mktemp("cut") / "s"
    go(str(folder))
    path = folder / "journal.jsonl"
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    for number, name in enumerate(sorted(os.listdir(folder / "arms"))):
        if gone and number % 5 == gone:
            (folder / "arms" / name / "report.json").unlink()
    kept = journal.read(str(folder))
    servers = FakeServers()
    again, said = go(str(folder), servers)
    assert expected(states(again)), "\n".join(said)
    assert again.runs[: len(kept.runs)] == tuple(kept.runs)
    numbers = {(run.arm, run.number) for run in again.runs}
    assert len(numbers) == len(again.runs), "a run was counted twice"
    assert not journal.read(str(folder)).open
    made = {(j.arm, j.number) for j in servers.made}
    assert not made & {(run.arm, run.number) for run in kept.runs}, "a valid run was repeated"


def test_a_run_that_ended_after_its_sweep_was_killed_is_taken_over(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    place = SweepFolder.open(str(folder), plan(), "/")
    place.close()
    one = job(folder, "baseline")
    leave_run(one, FAULT, 777)
    log = journal.SweepJournal(str(folder))
    log.started(journal.Started(1, "baseline", 0, "no-such-token", one.rundir))
    log.close()
    servers = FakeServers()
    result, said = go(str(folder), servers)
    assert "taken over" in said[0]
    assert result.runs[0].exposure.steps == 777
    assert (servers.made[0].arm, servers.made[0].number) == ("baseline", 1)


def test_a_run_that_was_cut_off_is_made_again_in_another_folder(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    SweepFolder.open(str(folder), plan(), "/").close()
    one = job(folder, "baseline")
    leave_run(one, FAULT, 777, whole=False)
    log = journal.SweepJournal(str(folder))
    log.started(journal.Started(1, "baseline", 0, "no-such-token", one.rundir))
    log.close()
    servers = FakeServers()
    result, said = go(str(folder), servers)
    assert "cut off" in said[0]
    assert servers.made[0].rundir != one.rundir
    assert servers.made[0].number == 0
    assert 1 in journal.read(str(folder)).lost
    assert expected(states(result))


def test_left_over_processes_of_a_cut_off_run_are_ended(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    SweepFolder.open(str(folder), plan(), "/").close()
    log = journal.SweepJournal(str(folder))
    log.started(journal.Started(1, "baseline", 0, "mark-of-this-test", "arms/0001-baseline"))
    log.close()
    child = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"], env={**os.environ, TOKEN: "mark-of-this-test"}
    )
    try:
        assert leftovers.marked("mark-of-this-test") == [child.pid]
        assert leftovers.supervisor_of([child.pid]) is None
        go(str(folder))
        assert child.wait(10) != 0
    finally:
        child.kill()
        child.wait()


def test_another_plan_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    SweepFolder.open(str(tmp_path / "s"), plan(), "/").close()
    other = plan()._replace(sha256="0")
    with pytest.raises(UsageError, match="another plan") as error:
        SweepFolder.open(str(tmp_path / "s"), other, "/")
    assert "crashlab sweep" in (error.value.hint or "")


def test_two_sweeps_cannot_work_in_one_folder(tmp_path: Path) -> None:
    held = SweepFolder.open(str(tmp_path / "s"), plan(), "/")
    with pytest.raises(UsageError, match="Another crashlab"):
        SweepFolder.open(str(tmp_path / "s"), plan(), "/")
    held.close()
    SweepFolder.open(str(tmp_path / "s"), plan(), "/").close()


def test_a_folder_with_something_else_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(UsageError, match="no sweep's folder"):
        SweepFolder.open(str(tmp_path), plan(), "/")
    with pytest.raises(MissingTool):
        SweepFolder.open("/proc/nowhere", plan(), "/")


def test_a_folder_knows_its_plan_and_its_command(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    SweepFolder.open(path, plan(), "/somewhere").close()
    assert is_sweep(path)
    assert not is_sweep(str(tmp_path))
    again = plan_of(path)
    assert again.sha256 == plan().sha256
    assert again.command == plan().command
    assert result_from(SweepFolder(path), again).runs == ()


def test_runs_that_leave_nothing_end_the_sweep_with_a_next_step(tmp_path: Path) -> None:
    def broken(job: Job, *_: Any) -> ArmRun:
        raise ToolFailed("it left nothing")

    chosen = plan()
    place = SweepFolder.open(str(tmp_path / "s"), chosen, "/")
    with pytest.raises(ToolFailed, match="in a row") as error:
        Sweep(chosen, place, Local(run=broken), OPTIONS, lambda _: None).go()
    assert "goes on afterwards" in (error.value.hint or "")
    place.close()


def test_an_error_in_the_plan_ends_the_sweep_at_once(tmp_path: Path) -> None:
    def refuse(job: Job, *_: Any) -> ArmRun:
        raise UsageError("no such shape")

    chosen = plan()
    place = SweepFolder.open(str(tmp_path / "s"), chosen, "/")
    with pytest.raises(UsageError, match="no such shape"):
        Sweep(chosen, place, Local(run=refuse), OPTIONS, lambda _: None).go()
    assert len(journal.read(place.path).lost) == 1
    place.close()


def test_what_runs_beside_a_broken_run_is_ended_and_kept(tmp_path: Path) -> None:
    chosen = plan()
    place = SweepFolder.open(str(tmp_path / "s"), chosen, "/")
    servers = FakeServers()

    def one_breaks(job: Job, stop: Any, machine: str | None) -> ArmRun:
        if job.number == 1:
            raise UsageError("no such shape")
        while not stop.wanted():
            time.sleep(0.05)
        return servers.run(job, stop, machine)

    with pytest.raises(UsageError, match="no such shape"):
        Sweep(chosen, place, Local(2, run=one_breaks), OPTIONS, lambda _: None).go()
    record = journal.read(place.path)
    assert not record.open
    assert [run.number for run in record.runs] == [0]
    assert (place.path, os.stat(tmp_path / "s" / "sweep.json").st_mode & 0o077) == (place.path, 0)
    place.close()


def test_an_interrupt_starts_nothing_more_and_what_was_cut_is_not_counted(tmp_path: Path) -> None:
    chosen = plan()
    place = SweepFolder.open(str(tmp_path / "s"), chosen, "/")
    box: list[Sweep] = []

    def interrupted(job: Job, *_: Any) -> ArmRun:
        box[0].interrupt()
        return ArmRun(job.arm, job.number, INCONCLUSIVE, note=INTERRUPTED)

    box.append(Sweep(chosen, place, Local(run=interrupted), OPTIONS, lambda _: None))
    result = box[0].go()
    assert (result.finished, result.runs) == (False, ())
    assert journal.read(place.path).lost == {1: "no result"} or journal.read(place.path).lost == {
        1: INTERRUPTED
    }
    place.close()


def test_runs_of_an_array_have_their_own_journals_and_are_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = FakeServers()
    monkeypatch.setattr("crashlab.sweep.arraytask.run_job", servers.run)
    path = str(tmp_path / "s")
    for number in (2, 1, 2):
        assert run_task(plan(), path, number, OPTIONS, "/", lambda _: None) is not None
    assert [j.run for j in servers.made] == [2, 1]
    result = result_from(SweepFolder(path), plan())
    assert [run.arm for run in result.runs] == ["baseline", "cudagraph-mode=NONE"]
    with pytest.raises(UsageError, match="array has"):
        run_task(plan(), path, 999, OPTIONS, "/", lambda _: None)


# --- what a run directory says


def test_a_fault_has_its_key_its_exposure_and_its_time(tmp_path: Path) -> None:
    one = job(tmp_path, "baseline")
    found = result_of(one, leave_run(one, FAULT, 3600), {}, "local")
    assert (found.outcome, found.exposure.steps, found.key) == (FAULT, 3600, "v1|gpu-fault|X")
    assert found.time_to_event_hours == pytest.approx(0.001)
    assert {e.lever: e.value for e in found.effective}["cudagraph-mode"] == "FULL"


def test_an_arm_whose_lever_did_not_take_is_not_applied_whatever_it_did(tmp_path: Path) -> None:
    one = job(tmp_path, f"{IGNORED}=marlin")
    path = leave_run(one, CLEAN, 3600)
    found = result_of(one, path, {}, None)
    assert found.outcome == NOT_APPLIED
    assert "Unknown vLLM environment variable" in (found.note or "")
    assert refused(one, path, {}) is True


def test_an_arm_without_any_sign_of_its_lever_is_not_applied_either(tmp_path: Path) -> None:
    one = job(tmp_path, "moe-backend=marlin")
    path = leave_run(one, CLEAN, 3600, log="nothing is said\n")
    found = result_of(one, path, {}, None)
    assert found.outcome == NOT_APPLIED
    assert "nothing in log" in (found.note or "")
    assert refused(one, path, {}) is False


@pytest.mark.parametrize("kind", [NEVER_READY, "host-death"])
def test_outcomes_without_a_fault_have_no_key(tmp_path: Path, kind: str) -> None:
    one = job(tmp_path, "baseline")
    found = result_of(one, leave_run(one, kind, 10), {}, None)
    assert (found.outcome, found.key, found.time_to_event_hours) == (kind, None, None)


def test_a_torn_run_directory_is_not_finished(tmp_path: Path) -> None:
    one = job(tmp_path, "baseline")
    assert not finished(str(tmp_path / "nowhere"), "soak")
    assert not finished(leave_run(one, FAULT, 10, whole=False), "soak")
    assert refused(one, str(tmp_path / "nowhere"), {}) is None
    path = leave_run(one, FAULT, 10)
    assert finished(path, "soak")
    Path(path, "report.json").write_text("{")
    assert not finished(path, "soak")
    Path(path, "report.json").unlink()
    assert finished(path, "run")


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
                        ["run", "event", "arm", "number", "outcome", "exposure", "effective", "token", "rundir"]),
                        inner, max_size=5), max_leaves=10))  # fmt: skip
def test_any_journal_line_can_be_read(value: Any) -> None:
    lines = value if isinstance(value, list) else [value]
    journal.replay(line for line in lines if isinstance(line, dict))


def test_a_result_survives_the_journal() -> None:
    run = ArmRun(
        "a", 3, FAULT, Exposure(5, 0.25, None, 7), "k", 0.25, False, (Setting("x", None), Setting("y", "1")),
        (Effective("x", "v", "log", True), Effective("y", None, None, None)), "arms/1", "note",
        "2026-01-01T00:00:00Z", "node 1",
    )  # fmt: skip
    assert journal.from_fields(json.loads(json.dumps(journal.to_fields(run)))) == run


# --- overlays


def test_an_overlay_is_filled_once_and_laid_over_the_environment(tmp_path: Path) -> None:
    place = str(tmp_path / "overlay")
    words = [
        "{python}",
        "-c",
        "import pathlib,sys; p = pathlib.Path(sys.argv[1]); (p / sys.argv[2]).write_text('x')",
    ]
    command = [[*words, "{overlay}", "made-{value}"]]
    for _ in range(2):
        assert prepared(place, command, {"value": "9.1"}, dict(os.environ)) == place
    assert Path(place, "made-9.1").exists()
    Path(place, "made-9.1").unlink()
    prepared(place, command, {"value": "9.1"}, dict(os.environ))
    assert not Path(place, "made-9.1").exists(), "it was filled again"
    prepared(place, command, {"value": "9.2"}, dict(os.environ))
    assert Path(place, "made-9.2").exists()
    assert prefix({"PYTHONPATH": "/x"}, place) == ("env", f"PYTHONPATH={place}:/x")
    Path(place, "pyvenv.cfg").write_text("")
    assert prefix({"PATH": "/bin"}, place) == ("env", f"VIRTUAL_ENV={place}", f"PATH={place}/bin:/bin")


def test_a_prepare_command_that_fails_is_the_arms_own_misfortune(tmp_path: Path) -> None:
    failing = job(tmp_path, "baseline")._replace(
        overlay="x", prepare=(("{python}", "-c", "import no_such_module"),)
    )
    found = run_job(failing)
    assert found.outcome == INCONCLUSIVE
    assert "no_such_module" in (found.note or "")
    with pytest.raises(ToolFailed, match="cannot be started"):
        prepared(str(tmp_path / "o"), [["/nowhere/pip"]], {}, {})


def test_options_that_soak_refuses_are_an_error_of_the_plan(tmp_path: Path) -> None:
    broken = job(tmp_path, "baseline")._replace(options=("--shape", "no-such-shape"), cwd=str(tmp_path))
    with pytest.raises(UsageError, match="refused") as error:
        run_job(broken)
    assert "no-such-shape" in str(error.value)
