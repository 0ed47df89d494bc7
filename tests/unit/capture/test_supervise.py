"""The supervisor in this process: step by step, with a played GPU program."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from crashlab.capture import evidence, supervise
from crashlab.capture.config import AttemptResult, RunConfig
from crashlab.capture.evidence import Means
from crashlab.capture.kmsg import KernelFollower
from crashlab.capture.plan import plan_environment
from crashlab.capture.rules import HangRules
from crashlab.capture.session import describe, run_one, settle
from crashlab.capture.signals import SignalBox
from crashlab.capture.supervise import Supervisor
from crashlab.debugger.process import Outcome
from crashlab.errors import MissingTool
from crashlab.report.fromrundir import analyze_rundir
from crashlab.report.options import AnalyzeOptions
from crashlab.rundir.reader import RunFolder, open_run
from crashlab.rundir.writer import RunWriter
from tests.support.runs import environment, fake, wait_for_output


@pytest.fixture
def box() -> Iterator[SignalBox]:
    with SignalBox() as made:
        yield made


@pytest.fixture
def writer(tmp_path: Path) -> RunWriter:
    return RunWriter.create(str(tmp_path / "run"), ["fake"])


def config(writer: RunWriter, *steps: str, **fields: object) -> RunConfig:
    base = environment()
    plan = plan_environment(base, writer.path, hang_dumps=bool(fields.get("hang_dumps", True)))
    made = RunConfig(tuple(fake(*steps)), base, plan, "/", sinks=(-1, -1), grace=1.0, linger=1.0)
    return made._replace(**fields)  # type: ignore[arg-type]


def go(
    writer: RunWriter, box: SignalBox, made: RunConfig, **more: object
) -> tuple[AttemptResult, RunFolder, list[str]]:
    said: list[str] = []
    describe(writer, made, {"option": "x"})
    result = run_one(made, writer, box, 1, say=said.append, **more)  # type: ignore[arg-type]
    writer.finish()
    return result, open_run(writer.path), said


def kinds(folder: RunFolder) -> list[str]:
    return [event.kind for event in folder.events]


def test_a_fault_is_seen_waited_for_and_suspicious(writer: RunWriter, box: SignalBox) -> None:
    result, folder, said = go(writer, box, config(writer, "fault:oob_load,3,0.1"))
    assert (result.signal, result.exit_code, result.shell_code) == (signal.SIGABRT, None, 134)
    assert result.suspicious
    assert len(result.dumps) == 1
    assert any("nothing will be ended" in text for text in said)
    assert {"started", "finding", "dump", "ended", "run-ended"} <= set(kinds(folder))


def test_a_quiet_end_is_not_suspicious(writer: RunWriter, box: SignalBox) -> None:
    result, _, _ = go(writer, box, config(writer, "say:x", "exit:3"))
    assert (result.exit_code, result.suspicious, result.ended_by) == (3, False, None)


def test_a_program_that_cannot_be_started(writer: RunWriter, box: SignalBox) -> None:
    with pytest.raises(MissingTool, match="cannot be started"):
        Supervisor(config(writer)._replace(argv=("/no/such",)), writer, box).run()
    with pytest.raises(MissingTool):
        Supervisor(config(writer)._replace(argv=("bad\0name",)), writer, box).run()


def test_a_hang_takes_metrics_first_then_host_then_gpu_evidence(writer: RunWriter, box: SignalBox) -> None:
    order: list[str] = []

    def runner(argv: tuple[str, ...], env: object, cwd: object, limits: object, on_output: object) -> Outcome:
        order.append(os.path.basename(argv[0]))
        return Outcome(b"text", 0)

    means = Means("/bin/py-spy", runner, (lambda: order.append("metrics"),))  # type: ignore[arg-type]
    made = config(writer, "hang", rules=HangRules(silence=1.0))
    result, folder, _ = go(writer, box, made, means=means)
    assert order == ["metrics", "nvidia-smi", "py-spy"]
    assert result.hang is not None
    assert result.ended_by in ("hang", None)
    events = kinds(folder)
    assert events.index("host-stack") < events.index("asked-for-dump") < events.index("dump")


def test_a_process_that_does_not_dump_when_asked_is_not_waited_for_for_ever(
    writer: RunWriter, box: SignalBox
) -> None:
    made = config(
        writer,
        "shell:P=$(echo $CUDA_COREDUMP_PIPE | sed s/%h/x/ | sed s/%p/$PPID/); mkfifo $P; exec 3<>$P; sleep 30",
        rules=HangRules(silence=0.8),
        hang_patience=1.0,
    )
    result, folder, _ = go(writer, box, made, means=Means(None))
    assert result.ended_by == "hang"
    assert any(e.kind == "asked-for-dump" and e.fields["ok"] for e in folder.events)


def test_kernel_log_lines_are_recorded_and_make_a_run_suspicious(
    writer: RunWriter, box: SignalBox, tmp_path: Path
) -> None:
    log = tmp_path / "kmsg"
    log.write_text("4,1,28199846,-;NVRM: Xid (PCI:0000:00:06): 79, GPU has fallen off the bus.\n")
    result, folder, _ = go(writer, box, config(writer, "exit:0"), kernel=KernelFollower(str(log)))
    assert result.suspicious
    (xid,) = [event for event in folder.events if event.kind == "xid"]
    assert xid.number("code") == 79
    assert "fallen off the bus" in Path(writer.file("kernel.log")).read_text()


def test_an_unreadable_kernel_log_is_a_problem_that_is_told(writer: RunWriter, box: SignalBox) -> None:
    _, folder, _ = go(writer, box, config(writer, "exit:0"), kernel=KernelFollower("/nowhere"))
    assert any("kernel log cannot be read" in what for what in folder.problems)


def test_without_a_subreaper_that_is_told(
    writer: RunWriter, box: SignalBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervise.tree, "become_subreaper", lambda: False)
    _, folder, _ = go(writer, box, config(writer, "exit:0"))
    assert any("gives us no orphans" in what for what in folder.problems)


def step_until(supervisor: Supervisor, what: str, folder: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        supervisor.step(0.05)
        if any(event.kind == what for event in open_run(folder).events):
            return
    raise AssertionError(what)


def test_versions_of_what_the_worker_had_loaded_are_in_the_report(
    writer: RunWriter, box: SignalBox, tmp_path: Path
) -> None:
    site = tmp_path / "site-packages"
    (site / "nvidia_cudnn_cu13-9.19.0.56.dist-info").mkdir(parents=True)
    paths = [
        tmp_path / "libcuda.so.580.159.04",
        site / "nvidia/cudnn/lib/libcudnn.so.9",
        tmp_path / "libcudnn.so.9",
    ]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"no real library")
    steps = [f"map:{path}" for path in paths]
    _, folder, _ = go(writer, box, config(writer, "sleep:0.1", *steps, "sleep:1.2", "fault:oob_load,2,0.3"))
    assert {"libraries", "versions", "duplicate-libraries"} <= set(kinds(folder))
    report = analyze_rundir(writer.path, AnalyzeOptions(fast=True))
    assert report.environment is not None
    assert report.environment["driver"].value == "580.159.04"
    assert report.environment["cudnn"].value == "9.19.0.56"
    assert any("cudnn is loaded from 2 files" in note for note in report.provenance)


def test_a_wall_clock_that_jumps_back_and_forth_disturbs_nothing(
    writer: RunWriter, box: SignalBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, jumps = time.time, itertools.cycle((0.0, -3e8, 3600.0, 3e8, -60.0))
    monkeypatch.setattr(time, "time", lambda: real() + next(jumps))
    result, folder, _ = go(
        writer, box, config(writer, "say:up", "sleep:1", "fault:oob_load,3,0.3", linger=0.5)
    )
    monkeypatch.undo()
    assert 1.0 < result.seconds < 60.0
    times = [event.at for event in folder.events if event.at is not None]
    assert times == sorted(times)
    assert len({(event.time or "")[:4] for event in folder.events}) > 1, "the clock did jump"
    report = analyze_rundir(writer.path, AnalyzeOptions(fast=True))
    assert report.verdict.kind == "gpu-fault"
    assert report.run is not None
    assert report.run.exposure is not None
    assert 0 < report.run.exposure["hours"] < 0.02


def test_dumps_over_the_cap_are_thinned_out(writer: RunWriter, box: SignalBox) -> None:
    steps = [f"fork:sleep:{n / 2};fault:oob_load" for n in range(3)]
    made = config(writer, *steps, "wait", max_dumps_bytes=900_000)
    _, folder, _ = go(writer, box, made)
    assert "dump-dropped" in kinds(folder)
    assert len(os.listdir(writer.file("cores"))) == 2


def test_the_cap_holds_for_the_dumps_of_all_attempts_and_spares_what_is_still_to_be_read(
    writer: RunWriter,
) -> None:
    made = config(writer, "exit:0", max_dumps_bytes=250)
    result = AttemptResult(1, 0, None, None, None, (), (), 0, 0, (), False, 1.0)
    for attempt in range(1, 5):
        paths = [writer.file("cores", f"h.{attempt}{n}.1.nvcudmp") for n in (0, 1)]
        for n, path in enumerate(paths):
            Path(path).write_bytes(bytes(100))
            os.utime(path, (1000 + 10 * attempt + n,) * 2)
        settle(made, writer, [], result._replace(attempt=attempt, dumps=tuple(paths)))
        assert os.path.exists(paths[0]), "the origin of this attempt is not analysed yet"
    left = sorted(os.listdir(writer.file("cores")))
    assert left == ["h.10.1.nvcudmp", "h.40.1.nvcudmp", "h.41.1.nvcudmp"]
    writer.start({})
    assert kinds(open_run(writer.path)).count("dump-dropped") == 5


class TestSignals:
    def supervisor(
        self, writer: RunWriter, box: SignalBox, *steps: str, **fields: object
    ) -> tuple[Supervisor, list[str]]:
        said: list[str] = []
        made = Supervisor(config(writer, *steps, **fields), writer, box, say=said.append, means=Means(None))
        made.start()
        return made, said

    def end(self, supervisor: Supervisor) -> AttemptResult:
        deadline = time.monotonic() + 60
        while not supervisor.over and time.monotonic() < deadline:
            supervisor.step()
        assert supervisor.over
        return supervisor.finish()

    def test_a_stop_during_a_dump_waits_and_a_second_one_cuts_it_short(
        self, writer: RunWriter, box: SignalBox
    ) -> None:
        supervisor, said = self.supervisor(writer, box, "fault:oob_load,3,5")
        step_until(supervisor, "dump", writer.path)
        os.kill(os.getpid(), signal.SIGTERM)
        supervisor.step(0.1)
        assert any("waiting for it" in text for text in said)
        assert supervisor.terminations == 1
        os.kill(os.getpid(), signal.SIGTERM)
        result = self.end(supervisor)
        assert any("cut short" in text for text in said)
        assert result.ended_by == "user"
        assert result.seconds < 5

    def test_evidence_on_request_and_forwarding(self, writer: RunWriter, box: SignalBox) -> None:
        supervisor, _ = self.supervisor(writer, box, "sleep:30", hang_dumps=False)
        step_until(supervisor, "process", writer.path)
        os.kill(os.getpid(), signal.SIGUSR1)
        supervisor.step(0.1)
        assert supervisor.hang == "asked for by SIGUSR1"
        assert not supervisor.over
        os.kill(os.getpid(), signal.SIGQUIT)
        result = self.end(supervisor)
        assert (result.signal, result.ended_by) == (signal.SIGQUIT, "user")

    def test_a_closed_terminal_is_a_request_to_end_and_tells_twice(
        self, writer: RunWriter, tmp_path: Path
    ) -> None:
        old = signal.signal(signal.SIGHUP, signal.SIG_DFL)
        try:
            with SignalBox() as box:
                supervisor, _ = self.supervisor(writer, box, "ignore:SIGHUP", "say:deaf", "sleep:30")
                wait_for_output(Path(writer.path), b"deaf")
                for _ in range(2):
                    os.kill(os.getpid(), signal.SIGHUP)
                    supervisor.step(0.1)
                assert supervisor._ending is not None
                assert not supervisor._ending.hurried, "the shell and the terminal both send it"
                result = self.end(supervisor)
        finally:
            signal.signal(signal.SIGHUP, old)
        assert (result.ended_by, result.suspicious, result.killed) == ("user", False, True)

    def test_under_nohup_a_closed_terminal_is_no_request(self) -> None:
        old = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            with SignalBox() as box:
                os.kill(os.getpid(), signal.SIGHUP)
                assert box.take() == []
                assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        finally:
            signal.signal(signal.SIGHUP, old)

    def test_a_signal_that_is_handed_on_waits_for_a_dump(self, writer: RunWriter, box: SignalBox) -> None:
        supervisor, _ = self.supervisor(writer, box, "fault:oob_load,3,0.5")
        step_until(supervisor, "dump", writer.path)
        os.kill(os.getpid(), signal.SIGQUIT)
        result = self.end(supervisor)
        assert (result.signal, len(result.dumps)) == (signal.SIGABRT, 1)

    def test_evidence_on_request_of_a_program_that_ends_well_is_no_hang(
        self, writer: RunWriter, box: SignalBox
    ) -> None:
        describe(writer, config(writer), {})
        supervisor, _ = self.supervisor(writer, box, "sleep:1.5", "exit:0")
        step_until(supervisor, "process", writer.path)
        os.kill(os.getpid(), signal.SIGUSR1)
        result = self.end(supervisor)
        assert (result.exit_code, result.hang, result.suspicious) == (0, None, False)
        writer.finish()
        report = analyze_rundir(writer.path, AnalyzeOptions(fast=True))
        assert report.verdict.kind == "no-fault"
        assert report.verdict.headline == "No GPU fault was seen; the program ended with exit code 0"
        assert any("asked for by SIGUSR1" in note and "to its own end" in note for note in report.provenance)

    def test_a_program_that_had_to_be_ended_after_a_request_for_evidence_hung(
        self, writer: RunWriter, box: SignalBox
    ) -> None:
        describe(writer, config(writer), {})
        supervisor, _ = self.supervisor(writer, box, "sleep:30")
        step_until(supervisor, "process", writer.path)
        os.kill(os.getpid(), signal.SIGUSR1)
        supervisor.step(0.1)
        os.kill(os.getpid(), signal.SIGTERM)
        assert self.end(supervisor).hang is not None
        writer.finish()
        assert analyze_rundir(writer.path, AnalyzeOptions(fast=True)).verdict.kind == "stall"

    def test_ctrl_c_is_counted(self, writer: RunWriter, box: SignalBox) -> None:
        supervisor, _ = self.supervisor(writer, box, "sleep:30")
        step_until(supervisor, "process", writer.path)
        os.kill(os.getpid(), signal.SIGINT)
        result = self.end(supervisor)
        assert (result.interrupts, result.ended_by) == (1, "user")

    def test_a_caller_can_stop_the_program(self, writer: RunWriter, box: SignalBox) -> None:
        supervisor, _ = self.supervisor(writer, box, "ignore:SIGTERM", "say:deaf", "sleep:30")
        wait_for_output(Path(writer.path), b"deaf")
        supervisor.stop("caller")
        supervisor.stop("caller")
        assert self.end(supervisor).signal == signal.SIGKILL


def test_a_program_that_goes_on_after_its_fault_is_examined(writer: RunWriter, box: SignalBox) -> None:
    made = config(writer, "fork:fault:oob_load", "sleep:30", after_fault=0.8)
    result, folder, said = go(writer, box, made, means=Means(None))
    assert result.ended_by == "after-fault"
    assert result.hang is None
    assert "after-fault" in kinds(folder)
    assert any("still running" in text for text in said)


def test_host_stacks_have_a_time_limit_and_stop_when_the_user_wants_out(writer: RunWriter) -> None:
    from crashlab.capture.tree import Proc

    means = Means("/bin/py-spy", before=(lambda: pytest.fail("not asked any more"),))
    here = Proc(os.getpid(), 1, 0.0, "python", ())
    done = evidence.take_host_evidence(writer, 1, 1, [here], means, lambda: True)
    assert done == (os.getpid(),)
    (event,) = [e for e in open_run(writer.path).events if e.kind == "host-stack"]
    assert "used up" in (event.text("problem") or "")


def test_with_no_pipe_that_is_recorded(writer: RunWriter) -> None:
    assert evidence.ask_for_dumps(writer, 1, None, "/", [1]) == ()
    assert kinds(open_run(writer.path)) == ["asked-for-dump"]


def test_the_command_line_in_this_process(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from tests.support.command import run_cli

    done = run_cli(
        "run", "--fast", "--out", str(tmp_path / "run"), "--linger", "1s", "--", *fake("fault:oob_load")
    )
    assert done.code == 10
    assert "oob_global_load_call" in done.err
    quiet = run_cli("run", "-q", "--fast", "--out", str(tmp_path / "q"), "--", *fake("fault:misaligned"))
    assert len(quiet.err.splitlines()) == 1
    recorded = run_cli("run", "--no-analysis", "--out", str(tmp_path / "r"), "--", *fake("exit:5"))
    assert recorded.code == 5
    unread = run_cli(
        "run",
        "--fast",
        "--out",
        str(tmp_path / "u"),
        "--",
        *fake(
            "say:x",
            "shell:head -c 5000 /dev/zero > $(echo $CUDA_COREDUMP_FILE | sed s/%h/h/ | sed s/%p/1/ | sed s/%t/2/)",
        ),
    )
    assert unread.code == 15
    assert run_cli("run").code == 2
    assert run_cli("run", "--grace", "soon", "--", "x").code == 2
    assert run_cli("run", "--max-dumps-bytes", "many", "--", "x").code == 2
    assert "export CUDA_COREDUMP_FILE" in run_cli("run", "--print-env", "shell").out


@pytest.mark.parametrize(
    ("error", "words"),
    [(KeyboardInterrupt(), "was interrupted"), (ValueError("odd"), "failed: ValueError: odd")],
)
def test_an_analysis_that_fails_ends_neither_record_nor_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, words: str
) -> None:
    from crashlab.report import fromrundir
    from tests.support.command import run_cli

    def broken(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(fromrundir, "analyze_rundir", broken)
    monkeypatch.delenv("CRASHLAB_TRACEBACK", raising=False)
    done = run_cli("run", "--out", str(tmp_path / "run"), "--", *fake("fault:oob_load"))
    assert done.code == 134
    assert words in done.err
    assert open_run(tmp_path / "run").ended


def test_while_a_report_is_made_stopping_signals_interrupt(box: SignalBox) -> None:
    with pytest.raises(KeyboardInterrupt), box.released():
        signal.raise_signal(signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGTERM)
    assert box.take() == [signal.SIGTERM]


def test_what_outlives_the_command_is_told_before_and_when_it_is_ended(
    writer: RunWriter, box: SignalBox
) -> None:
    made = config(writer, "daemon:sleep:60", "sleep:0.7", "exit:0", linger=2.5)
    result, folder, said = go(writer, box, made)
    assert (result.ended_by, result.suspicious) == ("outlived", False)
    before, after = (text for text in said if "outlived" in text or "still running" in text)
    assert "the command has ended; 1 process (" in before
    assert "--linger never" in before
    assert after.startswith("ending 1 process (")
    (event,) = [e for e in folder.events if e.kind == "outlived"]
    assert event.number("count") == 1
    notes = analyze_rundir(writer.path, AnalyzeOptions(fast=True)).provenance
    assert any(
        "The command ended with exit code 0; 1 process that it had started (" in note for note in notes
    )


def test_a_command_that_crashes_and_leaves_a_process_behind_crashed(
    writer: RunWriter, box: SignalBox
) -> None:
    made = config(writer, linger=0.3)._replace(argv=("bash", "-c", "setsid sleep 60 & kill -SEGV $$"))
    result, _, _ = go(writer, box, made)
    assert (result.ended_by, result.signal, result.suspicious) == ("outlived", signal.SIGSEGV, True)
    verdict = analyze_rundir(writer.path, AnalyzeOptions(fast=True)).verdict
    assert (verdict.kind, "SIGSEGV" in verdict.headline) == ("host-death", True)


def test_that_nobody_reads_is_told_once_and_ends_nothing(writer: RunWriter, box: SignalBox) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        made = config(writer, "say:a", "sleep:0.7", "say:b", "sleep:0.7", "exit:0", sinks=(write, -1))
        result, folder, said = go(writer, box, made)
    finally:
        os.close(write)
    assert result.exit_code == 0
    (told,) = [text for text in said if "nobody reads the program's stdout any more" in text]
    assert f"kill {os.getpid()}" in told
    assert kinds(folder).count("reader-gone") == 1
    assert Path(writer.file("output", "001.stdout.log")).read_bytes().split() == [b"a", b"b"]


def test_a_killed_program_is_told_to_be_killed(tmp_path: Path) -> None:
    from tests.support.runs import finish, start

    folder = tmp_path / "run"
    process = start(folder, ["--grace", "1"], fake("ignore:SIGTERM", "say:deaf", "sleep:60"))
    wait_for_output(folder, b"deaf")
    process.send_signal(signal.SIGTERM)
    ran = finish(process, folder)
    assert ran.code == 137
    assert "killed 1 process (SIGKILL) after --grace 1 s" in ran.err
    assert "was killed (SIGKILL) after it had been asked to end (exit code 137)" in ran.err
    notes = analyze_rundir(folder, AnalyzeOptions(fast=True)).provenance
    assert "The command was ended on request: it did not end when asked, and was killed (SIGKILL)." in notes


def test_a_program_that_was_not_started_leaves_a_whole_record(tmp_path: Path) -> None:
    from tests.support.command import run_cli

    out = tmp_path / "run"
    assert run_cli("run", "--out", str(out), "--", "/no/such/program").code == 3
    assert open_run(out).ended
    report = analyze_rundir(out, AnalyzeOptions(fast=True))
    assert report.verdict.headline == "The program could not be started: No such file or directory"
    assert not any("has no end" in note for note in report.provenance)


def test_without_analysis_nothing_is_said_to_be_examined(tmp_path: Path) -> None:
    from tests.support.command import run_cli

    done = run_cli("run", "--no-analysis", "--out", str(tmp_path / "r"), "--", "sh", "-c", "kill -SEGV $$")
    assert "examining" not in done.err
    assert f"'crashlab analyze {tmp_path / 'r'}' examines the evidence (--no-analysis)" in done.err


def test_a_closed_terminal_ends_a_run_without_a_restart(tmp_path: Path) -> None:
    from tests.support.runs import finish, start, wait_until

    folder = tmp_path / "run"
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        process = start(folder, ["--restart", "2"], ["sleep", "60"])
    finally:
        signal.signal(signal.SIGHUP, before)
    events = folder / "events.jsonl"
    wait_until(lambda: events.exists() and b'"process"' in events.read_bytes())
    process.send_signal(signal.SIGHUP)
    ran = finish(process, folder)
    assert ran.code == 128 + signal.SIGHUP
    assert "starting again" not in ran.err
    assert "was ended on request" in ran.err
    verdict = analyze_rundir(folder, AnalyzeOptions(fast=True)).verdict
    assert (verdict.kind, "was ended on request" in verdict.headline) == ("no-fault", True)
