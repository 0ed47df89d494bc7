"""Running a foreign program: limits hold, output survives, nothing is left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from crashlab.debugger import process
from crashlab.debugger.process import Limits, Outcome, run


def _python(tmp_path: Path, code: str, limits: Limits, **kwargs: object) -> Outcome:
    env = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path)}
    return run([sys.executable, "-c", code], env, str(tmp_path), limits, **kwargs)  # type: ignore[arg-type]


def test_output_and_exit_code_come_back(tmp_path: Path) -> None:
    outcome = _python(
        tmp_path, "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)", Limits(20)
    )
    assert outcome.exit_code == 3
    assert outcome.output.split() == [b"out", b"err"]
    assert (outcome.timed_out, outcome.flooded, outcome.missing) == (False, False, False)
    assert outcome.ms > 0


def test_a_signal_is_a_negative_exit_code(tmp_path: Path) -> None:
    assert _python(tmp_path, "import os; os.abort()", Limits(20)).exit_code == -6


def test_lines_printed_before_an_abort_are_not_lost_in_a_buffer(tmp_path: Path) -> None:
    assert b"said" in _python(tmp_path, "import os; print('said'); os.abort()", Limits(20)).output


def test_without_a_terminal_a_pipe_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_terminals() -> tuple[int, int]:
        raise OSError("out of pty devices")

    monkeypatch.setattr(process.os, "openpty", no_terminals)
    outcome = _python(tmp_path, "print('x' * 100000)", Limits(20))
    assert (outcome.exit_code, len(outcome.output)) == (0, 100001)


def test_line_ends_are_not_changed(tmp_path: Path) -> None:
    assert _python(tmp_path, "print('a'); print('b')", Limits(20)).output == b"a\nb\n"


def test_a_program_that_sleeps_is_stopped_in_time(tmp_path: Path) -> None:
    started = time.monotonic()
    outcome = _python(tmp_path, "import time; print('hi', flush=True); time.sleep(600)", Limits(1.0))
    assert time.monotonic() - started < 10
    assert (outcome.timed_out, outcome.exit_code, outcome.output) == (True, None, b"hi\n")


def test_a_program_that_closes_its_output_is_still_waited_for(tmp_path: Path) -> None:
    outcome = _python(
        tmp_path, "import os, time; os.close(1); os.close(2); time.sleep(0.3); os._exit(5)", Limits(20)
    )
    assert (outcome.exit_code, outcome.output) == (5, b"")


def test_output_is_cut_at_the_limit(tmp_path: Path) -> None:
    code = "import os\nwhile True: os.write(1, b'x' * 10000)"
    outcome = _python(tmp_path, code, Limits(20, output_bytes=50_000))
    assert (outcome.flooded, outcome.timed_out, outcome.exit_code) == (True, False, None)
    assert outcome.output == b"x" * 50_000


def test_output_is_streamed(tmp_path: Path) -> None:
    pieces: list[tuple[float, bytes]] = []
    code = "import time; print('one', flush=True); time.sleep(0.5); print('two', flush=True)"
    _python(tmp_path, code, Limits(20), on_output=lambda piece: pieces.append((time.monotonic(), piece)))
    assert b"".join(piece for _, piece in pieces) == b"one\ntwo\n"
    assert pieces[-1][0] - pieces[0][0] > 0.3


def test_a_listener_that_raises_leaves_no_process(tmp_path: Path) -> None:
    def listener(_: bytes) -> None:
        raise KeyboardInterrupt

    note = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))"
    code = f"import os, time; {note}; print(1, flush=True); time.sleep(600)"
    with pytest.raises(KeyboardInterrupt):
        _python(tmp_path, code, Limits(20), on_output=listener)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_memory_core_files_and_files_are_limited(tmp_path: Path) -> None:
    code = """
import resource as r, time
time.sleep(0.2)  # the limits are set from outside, a moment after the start
for kind in (r.RLIMIT_AS, r.RLIMIT_CORE, r.RLIMIT_FSIZE):
    print(*r.getrlimit(kind))
"""
    outcome = _python(tmp_path, code, Limits(20, memory_bytes=4 << 30, file_bytes=1 << 20))
    assert outcome.output.decode().split("\n")[:3] == [f"{n} {n}" for n in (4 << 30, 0, 1 << 20)]


def test_programs_that_do_not_start_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    (tmp_path / "text").chmod(0o755)
    (tmp_path / "locked").write_text("#!/bin/sh\n")
    missing = run([str(tmp_path / "nothing")], {}, str(tmp_path), Limits(5))
    assert (missing.missing, missing.error) == (True, "No such file or directory")
    for name in ("text", "locked"):
        broken = run([str(tmp_path / name)], {}, str(tmp_path), Limits(5))
        assert not broken.missing
        assert broken.error in ("Exec format error", "Permission denied")
    odd = run(["a\0b"], {}, str(tmp_path), Limits(5))
    assert odd.error is not None


def test_no_file_descriptor_is_leaked(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        _python(tmp_path, "print(1)", Limits(20))
        run([str(tmp_path / "nothing")], {}, str(tmp_path), Limits(5))
    assert len(os.listdir("/proc/self/fd")) == before


def test_it_runs_beside_other_threads(tmp_path: Path) -> None:
    import threading

    outcomes: list[Outcome] = []
    threads = [
        threading.Thread(target=lambda: outcomes.append(_python(tmp_path, "print('x' * 5000)", Limits(20))))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 4


def test_processes_without_the_mark_are_left_alone(tmp_path: Path) -> None:
    import subprocess

    other = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(30)"], env={"PATH": os.environ["PATH"]}
    )
    try:
        _python(tmp_path, "print(1)", Limits(20))
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_child_that_somebody_else_reaped_counts_as_ended(tmp_path: Path) -> None:
    import threading

    def reap() -> None:
        while True:
            try:
                os.waitpid(-1, 0)
                return
            except ChildProcessError:
                time.sleep(0.01)

    thief = threading.Thread(target=reap)
    thief.start()
    outcome = _python(tmp_path, "print('x')", Limits(20))
    thief.join()
    assert outcome.output == b"x\n"
    assert not outcome.timed_out


def test_descriptors_and_processes_are_found_only_where_proc_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_proc(_: str) -> list[str]:
        raise FileNotFoundError

    monkeypatch.setattr(process.os, "listdir", no_proc)
    assert process._own_processes() == []


def test_processes_that_only_mention_the_folder_are_left_alone(tmp_path: Path) -> None:
    """Found the hard way: a folder such as ``/`` stands in every process's environment."""
    import subprocess

    bystander = subprocess.Popen(["sleep", "60"], env={"TMPDIR": str(tmp_path), "PATH": os.environ["PATH"]})
    try:
        _python(tmp_path, "pass", Limits(20))
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.timeout(60)
def test_a_program_dies_with_a_caller_that_is_killed(tmp_path: Path) -> None:
    note = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))"
    inner = f"import os, time; {note}; time.sleep(600)"
    outer = (
        "import sys; from crashlab.debugger.process import Limits, run; "
        f"run([sys.executable, '-c', {inner!r}], {{}}, {str(tmp_path)!r}, Limits(600))"
    )
    root = str(Path(__file__).resolve().parents[3])
    caller = subprocess.Popen([sys.executable, "-c", outer], env={**os.environ, "PYTHONPATH": root})
    assert _eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
    pid = int((tmp_path / "pid").read_text())
    caller.kill()
    caller.wait()
    assert _eventually(lambda: not _runs(pid))


def test_without_a_shell_there_is_no_guard_and_all_else_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crashlab.debugger.guard._SHELL", "/nonexistent/sh")
    assert _python(tmp_path, "print('here')", Limits(20)).output == b"here\n"


def _eventually(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.02)
    return False


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False
