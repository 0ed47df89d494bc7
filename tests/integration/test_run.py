"""``crashlab run`` around programs that fault, hang, lie, flood and refuse to die."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from crashlab.report.fromrundir import analyze_rundir
from crashlab.report.options import AnalyzeOptions
from crashlab.rundir.output import merged_blocks
from crashlab.rundir.reader import open_run
from tests.support.fakeprogram import dump_bytes
from tests.support.runs import fake, finish, read_events, run, start, wait_for_output, wait_gone

FAST = AnalyzeOptions(fast=True)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A new run directory; output that had to be kept in memory meanwhile is removed at the end."""
    yield tmp_path / tmp_path.name
    _forget_overflow(tmp_path.name)


def _forget_overflow(name: str) -> None:
    for place in Path("/dev/shm").glob(f"crashlab-{os.getuid()}-{name}-*"):
        shutil.rmtree(place, ignore_errors=True)


def wait_for(folder: Path, kind: str, seconds: float = 60, **fields: object) -> dict[str, object]:
    """The first event of a kind, as soon as it is written."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if (folder / "events.jsonl").exists():
            for event in read_events(folder):
                if event["event"] == kind and all(event.get(k) == v for k, v in fields.items()):
                    return event
        time.sleep(0.02)
    raise AssertionError(f"no {kind} event within {seconds} s")


class TestWhenNothingHappens:
    def test_the_programs_code_output_and_streams_pass_through(self, folder: Path) -> None:
        ran = run(folder, "say:to stdout", "err:to stderr", "exit:7")
        assert ran.code == 7
        assert ran.out == b"to stdout\n"
        assert "to stderr\n" in ran.err
        assert not (folder / "report.json").exists()

    def test_the_run_directory_says_what_ran_and_how_it_ended(self, folder: Path) -> None:
        run(folder, "exit:0")
        info = json.loads((folder / "run.json").read_text())
        assert info["schema"] == "crashlab.run/1"
        assert info["argv"][-1] == "exit:0"
        manifest = json.loads((folder / "manifest.json").read_text())
        assert {"run.json", "events.jsonl"} <= {row["path"] for row in manifest["files"]}
        report = analyze_rundir(folder, FAST)
        assert report.verdict.kind == "no-fault"
        assert report.run is not None
        assert report.run.exit_code == 0

    def test_a_program_that_does_not_exist_is_a_missing_prerequisite(self, folder: Path) -> None:
        ran = finish(start(folder, [], ["/no/such/program"]), folder)
        assert ran.code == 3
        assert "cannot be started" in ran.err

    def test_an_existing_folder_is_not_written_into(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "precious").write_text("x")
        ran = run(folder, "exit:0")
        assert ran.code == 2
        assert os.listdir(folder) == ["precious"]


class TestFaults:
    def test_a_fault_gives_the_verdict_the_report_and_exit_code_10(self, folder: Path) -> None:
        ran = run(folder, "fault:oob_load")
        assert ran.code == 10
        assert "oob_global_load_call" in ran.err
        assert ran.report["verdict"]["kind"] == "gpu-fault"
        assert ran.report["run"]["signal"] == "SIGABRT"
        assert ran.report["run"]["argv"][-1] == "fault:oob_load"
        assert (folder / "report.txt").read_text().startswith("Warp Illegal Address")

    def test_a_dump_that_arrives_without_a_word_is_found(self, folder: Path) -> None:
        assert run(folder, "silent-dump:misaligned", "abort").code == 10

    def test_a_device_assert_is_reported_as_one(self, folder: Path) -> None:
        ran = run(folder, "fault:assert")
        assert (ran.code, ran.report["verdict"]["kind"]) == (10, "device-assert")

    def test_a_fault_without_dump_is_exit_code_11(self, folder: Path) -> None:
        ran = run(folder, "driver-only:oob_load", "abort")
        assert ran.code == 11
        assert ran.report["verdict"]["pc_source"] == "driver-log"

    def test_an_error_that_writes_no_dump_is_known_from_the_programs_words(self, folder: Path) -> None:
        ran = run(folder, "say:END cudaErrorInvalidAddressSpace", "exit:4")
        assert ran.code == 11
        assert "cudaErrorInvalidAddressSpace" in ran.report["verdict"]["headline"]

    def test_a_parent_that_exits_with_0_hides_nothing(self, folder: Path) -> None:
        ran = run(folder, "fork:fault:oob_store", "wait", "exit:0")
        assert ran.code == 10
        assert ran.report["run"]["exit_code"] == 0

    def test_an_engine_that_died_by_its_servers_words_is_found_though_the_exit_code_is_0(
        self, folder: Path
    ) -> None:
        ran = run(folder, "replay:vllm/nodump.log.xz", "exit:0")
        assert ran.code == 11
        assert ran.report["host"] is not None

    def test_of_three_processes_two_fault_and_both_dumps_are_read_as_one_case(self, folder: Path) -> None:
        ran = run(
            folder,
            "fork:sleep:0.2;fault:oob_load",
            "fork:sleep:0.9;fault:misaligned",
            "fork:sleep:1.5;say:third lives",
            "wait",
            "exit:0",
        )
        assert ran.code == 10
        assert {case["role"] for case in ran.report["cases"]} == {"origin", "sympathetic"}
        assert b"third lives" in ran.out

    def test_a_dump_written_in_pieces_with_pauses_is_waited_for(self, folder: Path) -> None:
        ran = run(folder, "fork:fault:oob_load,3,3.2", "exit:0", options=["--linger", "0.5"])
        assert ran.code == 10
        (dump,) = (folder / "cores").iterdir()
        assert dump.read_bytes() == dump_bytes("oob_load")

    def test_a_dump_cut_short_still_gives_what_the_driver_said(self, folder: Path) -> None:
        ran = run(folder, "fork:cut-dump:oob_load,4,0.1", "wait", "exit:0", options=["--linger", "1"])
        assert ran.code in (10, 11)
        assert ran.report["verdict"]["kind"] == "gpu-fault"

    def test_a_user_defined_dump_place_is_kept_watched_and_reported(
        self, folder: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "mine").mkdir()
        place = str(tmp_path / "mine" / "core.%p")
        ran = run(folder, "fault:oob_load", CUDA_COREDUMP_FILE=place)
        assert ran.code == 10
        settings = json.loads((folder / "run.json").read_text())["settings"]
        (setting,) = [one for one in settings if one["name"] == "CUDA_COREDUMP_FILE"]
        assert (setting["value"], setting["origin"]) == (place, "user")

    def test_a_setting_that_defeats_the_purpose_is_told(self, folder: Path) -> None:
        ran = run(folder, "exit:0", CUDA_ENABLE_COREDUMP_ON_EXCEPTION="0", CUDA_LAUNCH_BLOCKING="1")
        assert "CUDA_ENABLE_COREDUMP_ON_EXCEPTION=0 defeats" in ran.err
        assert "CUDA_LAUNCH_BLOCKING=1 distorts" in ran.err

    def test_a_program_that_lives_on_after_its_fault_is_examined_and_ended(self, folder: Path) -> None:
        ran = run(folder, "fork:fault:oob_load", "hang", options=["--after-fault", "1.5"])
        assert ran.code == 10
        assert len(list((folder / "cores").iterdir())) == 2
        assert ran.of("after-fault")
        assert ran.report["verdict"]["kind"] == "gpu-fault"


class TestHangs:
    def test_a_silent_program_is_dumped_through_its_pipe(self, folder: Path) -> None:
        ran = run(folder, "hang", options=["--silence", "1.5"])
        assert (ran.code, ran.report["verdict"]["kind"]) == (12, "hang")
        assert ran.of("host-stack")
        assert ran.of("asked-for-dump")[0]["ok"] is True

    def test_chatter_of_a_stalled_server_is_no_progress(self, folder: Path) -> None:
        line = "INFO: 127.0.0.1 - GET /health HTTP/1.1 200 OK"
        shell = f'shell:for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "{line}"; sleep 0.3; done'
        ran = run(
            folder,
            shell,
            options=["--stall-after", "1.5", "--grace", "1"],
        )
        assert ran.code == 12
        assert "no sign of progress" in ran.report["verdict"]["headline"]

    def test_without_pipes_host_evidence_is_taken_and_the_verdict_is_a_stall(self, folder: Path) -> None:
        ran = run(folder, "sleep:60", options=["--silence", "1", "--no-hang-dumps"])
        assert (ran.code, ran.report["verdict"]["kind"]) == (12, "stall")
        assert not ran.of("asked-for-dump")

    def test_sigusr1_takes_evidence_now(self, folder: Path) -> None:
        process = start(folder, [], fake("hang"))
        wait_for_output(folder, b"READY")
        process.send_signal(signal.SIGUSR1)
        ran = finish(process, folder)
        assert ran.code == 12
        assert "SIGUSR1" in ran.of("hang")[0]["reason"]

    def test_sigusr1_without_pipes_lets_the_program_go_on(self, folder: Path) -> None:
        process = start(folder, ["--no-hang-dumps"], fake("sleep:2.5", "say:finished", "exit:0"))
        wait_for(folder, "process")
        process.send_signal(signal.SIGUSR1)
        ran = finish(process, folder)
        assert b"finished" in ran.out


class TestEndings:
    def test_sigterm_while_a_dump_is_written_waits_for_it(self, folder: Path) -> None:
        process = start(folder, [], fake("fault:oob_load,6,0.4"))
        wait_for(folder, "dump", state="growing")
        process.send_signal(signal.SIGTERM)
        ran = finish(process, folder)
        assert ran.code == 10
        (dump,) = (folder / "cores").iterdir()
        assert dump.read_bytes() == dump_bytes("oob_load")

    def test_a_second_sigterm_cuts_the_dump_short_and_says_so(self, folder: Path) -> None:
        process = start(folder, ["--grace", "1"], fake("fault:oob_load,6,1.5"))
        wait_for(folder, "dump", state="growing")
        process.send_signal(signal.SIGTERM)
        wait_for(folder, "signal")
        process.send_signal(signal.SIGTERM)
        ran = finish(process, folder, 50)
        assert "cut short" in ran.err
        assert ran.report["verdict"]["kind"] == "gpu-fault"

    def test_ctrl_c_ends_the_program_and_gives_130(self, folder: Path) -> None:
        process = start(folder, [], fake("sleep:60"))
        wait_for(folder, "process")
        process.send_signal(signal.SIGINT)
        assert finish(process, folder).code == 130

    def test_ctrl_c_twice_leaves_at_once_even_if_the_program_ignores_it(self, folder: Path) -> None:
        process = start(folder, ["--grace", "60"], fake("ignore:SIGINT", "say:deaf", "sleep:60"))
        wait_for_output(folder, b"deaf")
        process.send_signal(signal.SIGINT)
        wait_for(folder, "asked-to-end")
        before = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert finish(process, folder).code == 130
        assert time.monotonic() - before < 40, "the grace of 60 s is not waited for"
        assert open_run(folder).ended

    def test_a_program_that_ignores_sigterm_is_killed_after_the_grace(self, folder: Path) -> None:
        process = start(folder, ["--grace", "1"], fake("ignore:SIGTERM", "say:deaf", "sleep:60"))
        wait_for_output(folder, b"deaf")
        process.send_signal(signal.SIGTERM)
        ran = finish(process, folder, 50)
        assert ran.code == 128 + signal.SIGKILL
        assert ran.of("killed")

    def test_what_outlives_the_command_is_ended_daemons_included(self, folder: Path, tmp_path: Path) -> None:
        mark = f"sleep:{random.randint(3000, 9000)}.5"
        ran = run(folder, f"daemon:{mark}", "sleep:1", "exit:0", options=["--linger", "1"])
        assert ran.code == 0
        wait_gone(mark)
        assert ran.of("ended")[0]["ended_by"] == "outlived"

    def test_daemons_may_live_as_long_as_they_like_if_the_user_says_so(self, folder: Path) -> None:
        ran = run(folder, "daemon:sleep:2;say:daemon done", "exit:0", options=["--linger", "never"])
        assert b"daemon done" in ran.out

    def test_other_signals_are_forwarded(self, folder: Path) -> None:
        process = start(
            folder,
            [],
            ["sh", "-c", "trap 'echo got usr2; exit 5' USR2; echo ready; while :; do sleep 0.1; done"],
        )
        wait_for_output(folder, b"ready")
        process.send_signal(signal.SIGUSR2)
        ran = finish(process, folder)
        assert ran.code == 5
        assert b"got usr2" in ran.out

    def test_a_program_that_segfaults_is_a_host_death(self, folder: Path) -> None:
        ran = finish(start(folder, [], ["sh", "-c", "kill -SEGV $$"]), folder)
        assert (ran.code, ran.report["verdict"]["kind"]) == (16, "host-death")

    def test_no_orphan_zombie_or_helper_is_left(self, folder: Path) -> None:
        ran = run(folder, "short-children:500", "sleep:1", "exit:0")
        assert ran.code == 0
        wait_gone(str(folder))


class TestRestart:
    def test_each_crash_is_a_case_and_the_first_decides_the_code(self, folder: Path) -> None:
        ran = run(folder, "say:up", "fault:oob_load", options=["--restart", "2"])
        assert ran.code == 10
        assert sorted(path.name for path in (folder / "cases").iterdir()) == ["001", "002", "003"]
        assert ran.out.count(b"up\n") == 3
        second = analyze_rundir(folder, FAST, attempt=2)
        assert [item.path for item in second.inputs] != [
            item.path for item in analyze_rundir(folder, FAST).inputs
        ]

    def test_a_program_that_ends_well_is_not_started_again(self, folder: Path) -> None:
        assert run(folder, "say:up", "exit:0", options=["--restart", "3"]).out == b"up\n"

    def test_old_dumps_go_when_the_cap_is_reached_but_first_and_newest_stay(self, folder: Path) -> None:
        size = len(dump_bytes("oob_load"))
        script = [
            "fork:fault:oob_load",
            "sleep:0.4",
            "fork:fault:oob_load",
            "sleep:0.4",
            "fork:fault:oob_load",
            "wait",
            "exit:0",
        ]
        ran = run(folder, *script, options=["--max-dumps-bytes", str(size * 4)])
        assert len(list((folder / "cores").iterdir())) == 3
        assert ran.code == 10


class TestOutput:
    def test_every_byte_is_recorded_nul_bad_utf8_and_long_lines_included(self, folder: Path) -> None:
        ran = run(folder, "bytes:00fffe410a", "long-line:10", "say:end", "exit:0")
        recorded = (folder / "output" / "001.stdout.log").read_bytes()
        assert recorded == ran.out
        assert recorded[:5] == b"\x00\xff\xfeA\n"
        assert len(recorded) == 5 + (10 << 20) + 1 + 4

    def test_no_line_of_twenty_thousand_on_two_streams_is_lost(self, folder: Path) -> None:
        ran = run(folder, "lines:20000", "exit:0")
        lines = b"".join(merged_blocks(open_run(folder), 1)).splitlines()
        assert len(lines) == 20000
        numbers = [int(line.split()[1]) for line in lines]
        assert sorted(numbers) == list(range(20000))
        assert ran.code == 0

    def test_a_reader_that_goes_away_does_not_disturb(self, folder: Path) -> None:
        process = start(folder, [], fake("say:first", "sleep:0.5", "lines:5000", "fault:oob_load"))
        assert process.stdout is not None
        process.stdout.read(6)
        process.stdout.close()
        process.stdout = None
        ran = finish(process, folder)
        assert ran.code == 10
        assert (folder / "output" / "001.stdout.log").read_bytes().count(b"\n") == 2501

    def test_a_reader_that_stops_reading_does_not_stop_the_program(self, folder: Path) -> None:
        process = start(folder, [], fake("print:30", "exit:0"))
        wait_for(folder, "command-ended")
        recorded = (folder / "output" / "001.stdout.log").stat().st_size
        assert recorded >= 30_000_000
        finish(process, folder)


class TestBrokenPlaces:
    def test_a_read_only_folder_sends_the_run_elsewhere_and_says_so(self, tmp_path: Path) -> None:
        ran = finish(start(tmp_path / "x", ["--out", "/proc/nowhere/run"], fake("exit:3")), tmp_path)
        assert ran.code == 3
        assert "could not be written" in ran.err
        place = Path(ran.err.split("evidence goes to ")[1].splitlines()[0])
        assert (place / "run.json").exists()

    def test_a_full_disk_loses_neither_the_verdict_nor_the_last_words(self, small_disk: Path) -> None:
        folder = small_disk / small_disk.parent.name
        ran = run(folder, "long-line:9", "driver-only:oob_load", "err:last words", "abort")
        assert ran.code == 11
        report = analyze_rundir(folder, FAST)
        assert report.verdict.kind == "gpu-fault"
        text = b"".join(merged_blocks(open_run(folder), 1))
        assert b"last words" in text

    def test_a_dump_that_fills_the_disk_ends_in_a_clear_report(self, small_disk: Path) -> None:
        folder = small_disk / small_disk.parent.name
        ran = run(folder, "fault:shared_oob_full", seconds=90)
        assert ran.code in (10, 11)
        assert open_run(folder).ended
        assert analyze_rundir(folder, FAST).verdict.kind == "gpu-fault"

    def test_a_dump_that_grows_for_ever_is_ended_at_the_cap(self, folder: Path) -> None:
        ran = run(folder, "grow:300", options=["--max-dumps-bytes", "8M", "--grace", "1"], seconds=120)
        assert any("the limit is" in problem for problem in open_run(folder).problems)
        assert ran.code != 0

    def test_a_wall_clock_that_jumps_does_not_change_the_order(self, folder: Path) -> None:
        run(folder, "say:a", "exit:0")
        records = read_events(folder)
        for number, record in enumerate(records):
            record["t"] = f"19{70 + number % 7}-01-01T00:00:00.000Z"
        (folder / "events.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
        report = analyze_rundir(folder, FAST)
        assert report.run is not None
        assert report.run.exposure is not None
        assert 0 <= report.run.exposure["hours"] < 0.1

    def test_a_folder_that_vanishes_meanwhile_is_no_hang(self, folder: Path) -> None:
        process = start(folder, [], fake("sleep:1", "say:x", "exit:4"))
        wait_for(folder, "process")
        subprocess.run(["rm", "-rf", str(folder)], check=True)
        assert finish(process, folder, 30).code == 4


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    place = tmp_path / "small"
    place.mkdir()
    made = (
        os.getuid() == 0
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)], capture_output=True, check=False
        ).returncode
    )
    if not made:
        pytest.skip("a small file system can only be mounted by root")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=False)
    _forget_overflow(tmp_path.name)


def _killed_at(folder: Path, after: float) -> Path:
    process = start(folder, [], fake("say:one", "lines:200", "sleep:0.1", "fault:oob_load,3,0.1"))
    time.sleep(after)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    return folder


@pytest.mark.slow
def test_killed_at_any_moment_what_was_seen_is_readable(tmp_path: Path) -> None:
    chance = random.Random(6)
    readable = complete = 0
    for number in range(50):
        folder = _killed_at(tmp_path / f"run{number}", chance.uniform(0.0, 1.4))
        wait_gone(str(folder))  # the pump goes when its program has gone
        if not (folder / "events.jsonl").exists():
            continue
        readable += 1
        report = analyze_rundir(folder, FAST)
        run_folder = open_run(folder)
        dumps = list((folder / "cores").iterdir())
        if dumps and dumps[0].stat().st_size == len(dump_bytes("oob_load")):
            complete += 1
            assert report.verdict.kind == "gpu-fault"
        if not any(event.kind in ("ended", "run-ended") for event in run_folder.events):
            assert any("no end" in note for note in report.provenance)
    assert readable > 30
    assert complete > 10


def test_killed_while_the_dump_is_written_the_program_finishes_its_dump(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = start(folder, [], fake("fault:oob_load,6,0.2"))
    wait_for(folder, "dump", state="growing")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    wait_gone(str(folder))
    (dump,) = (folder / "cores").iterdir()
    assert dump.read_bytes() == dump_bytes("oob_load")
    assert b"All done" in (folder / "output" / "001.stderr.log").read_bytes()
    assert analyze_rundir(folder, FAST).verdict.kind == "gpu-fault"


@pytest.mark.parametrize("form", ["shell", "docker", "kubernetes", "systemd"])
def test_print_env_prints_and_runs_nothing(tmp_path: Path, form: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "crashlab", "run", "--print-env", form, "--out", "/evidence"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )
    assert "CUDA_ENABLE_COREDUMP_ON_EXCEPTION" in done.stdout
    assert os.listdir(tmp_path) == []
