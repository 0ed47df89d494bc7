"""A whole session against debuggers that behave in every way but well."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import pytest

from crashlab.debugger import candidates, commands, session
from crashlab.debugger.candidates import Candidate, Choice
from crashlab.debugger.process import Limits, Outcome
from crashlab.debugger.session import run_session
from tests.support import fake_cuda_gdb as fake
from tests.unit.debugger import recorded

SHARED = recorded.transcripts("cuda-gdb-13.0")["shared_oob"].removesuffix("==end\n")


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "gpu.core"
    path.write_bytes(b"pretend dump")
    return path


@pytest.fixture
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of the test's own, to see that it is left empty."""
    folder = tmp_path / "temp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def _run(
    tmp_path: Path, dump: Path, behaviour: str, *, transcript: str = "", **kwargs: object
) -> session.SessionResult:
    program = fake.install(tmp_path / "bin", behaviour, transcript=transcript)
    result = run_session(dump, candidates.probe(program), **kwargs)  # type: ignore[arg-type]
    assert [pid for pid in fake.pids(program) if fake.is_alive(pid)] == []
    return result


def test_a_good_session_is_ok_and_understood(tmp_path: Path, dump: Path, temp: Path) -> None:
    result = _run(tmp_path, dump, "answers", transcript=SHARED)
    assert (result.status, result.exit_code, result.detail, result.version) == ("ok", 0, None, "12.4")
    assert result.transcript is not None
    assert result.transcript.exception_code == 5
    assert result.tail is not None
    assert result.tail.endswith("==end")
    assert list(temp.iterdir()) == []


def test_one_that_sleeps_for_ever_is_stopped_and_its_words_are_kept(
    tmp_path: Path, dump: Path, temp: Path
) -> None:
    started = time.monotonic()
    result = _run(tmp_path, dump, "sleeps", transcript=SHARED, seconds=1.5)
    assert time.monotonic() - started < 15
    assert (result.status, result.exit_code, result.detail) == ("timed-out", None, "stopped after 1.5 s")
    assert result.transcript is not None
    assert result.transcript.exception_code == 5
    assert list(temp.iterdir()) == []


def test_one_that_ignores_signals_and_says_nothing_is_stopped(tmp_path: Path, dump: Path) -> None:
    result = _run(tmp_path, dump, "deaf", seconds=1)
    assert (result.status, result.output, result.transcript, result.tail) == ("timed-out", "", None, None)


def test_one_that_floods_is_stopped_at_the_limit(tmp_path: Path, dump: Path, temp: Path) -> None:
    result = _run(tmp_path, dump, "floods", output_bytes=200_000)
    assert (result.status, len(result.output)) == ("failed", 200_000)
    assert result.detail == "stopped because it printed more than 200000 bytes"
    assert result.transcript is not None
    assert result.transcript.exception_code == 14
    assert result.tail is not None
    assert len(result.tail) <= 2000


def test_garbage_bytes_are_no_facts(tmp_path: Path, dump: Path) -> None:
    result = _run(tmp_path, dump, "garbage")
    assert result.status == "ok"
    assert result.transcript is None or result.transcript.exception_code is None


def test_children_do_not_outlive_the_session(tmp_path: Path, dump: Path, temp: Path) -> None:
    started = time.monotonic()
    result = _run(tmp_path, dump, "breeds", seconds=30)
    assert time.monotonic() - started < 20
    assert result.status == "ok"
    assert len(fake.pids(str(tmp_path / "bin" / "cuda-gdb"))) == 3
    assert list(temp.iterdir()) == []


def test_one_that_says_nothing_has_failed(tmp_path: Path, dump: Path) -> None:
    result = _run(tmp_path, dump, "silent")
    assert (result.status, result.detail, result.transcript) == (
        "failed",
        "printed nothing (exit code 0)",
        None,
    )


def test_one_that_stops_early_has_failed(tmp_path: Path, dump: Path) -> None:
    result = _run(tmp_path, dump, "stops-early", transcript=SHARED)
    assert (result.status, result.exit_code) == ("failed", 3)
    assert result.detail == "stopped before its last command (exit code 3)"
    assert result.transcript is not None


def test_one_that_aborts_is_told_from_one_that_fails(tmp_path: Path, dump: Path) -> None:
    result = _run(tmp_path, dump, "aborts", transcript=SHARED)
    assert (result.status, result.exit_code) == ("aborted", -6)
    assert result.detail is not None
    assert "std::bad_alloc" in result.detail
    assert result.transcript is not None
    assert result.transcript.exception_code == 5


def test_one_that_is_killed_has_aborted(tmp_path: Path, dump: Path) -> None:
    result = _run(tmp_path, dump, "killed")
    assert (result.status, result.exit_code, result.detail) == ("aborted", -9, "killed by signal 9")


def test_memory_is_limited(tmp_path: Path, dump: Path) -> None:
    result = _run(tmp_path, dump, "hungry", memory_bytes=2 << 30, seconds=60)
    assert result.status == "aborted"
    assert "out of memory" in result.output


def test_a_broken_binary_costs_the_session_only(tmp_path: Path, dump: Path) -> None:
    result = run_session(dump, fake.install_broken(tmp_path / "bin"))
    assert result.status == "failed"
    assert result.detail is not None
    assert result.detail.startswith("cannot be started: ")


def test_no_debugger_is_missing_with_the_reason(tmp_path: Path, dump: Path) -> None:
    choice = candidates.choose(())
    result = run_session(dump, choice)
    assert (result.status, result.argv, result.detail) == ("missing", (), choice.why)
    gone = run_session(dump, str(tmp_path / "cuda-gdb"))
    assert (gone.status, gone.detail) == ("missing", "cannot be started: No such file or directory")
    bad = run_session(dump, Candidate("/x/cuda-gdb", "PATH", problem="does not answer --version"))
    assert (bad.status, bad.detail) == ("missing", "/x/cuda-gdb: does not answer --version")


def test_a_choice_is_taken_as_it_is(tmp_path: Path, dump: Path) -> None:
    program = fake.install(tmp_path / "bin", "answers", transcript=SHARED)
    candidate = Candidate(program, "PATH", (13, 0))
    result = run_session(str(dump), Choice(candidate, "because"))
    assert (result.status, result.version, result.argv[0]) == ("ok", "13.0", program)


@pytest.mark.parametrize(
    "name",
    [
        "a b.core",
        "quote'\".core",
        "line\nbreak.core",
        "-dash.core",
        "$(touch x).core",
        "~home.core",
        "ünïcode.core",
        "*.core",
    ],
)
def test_any_file_name_reaches_the_debugger_as_the_same_bytes(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(b"bytes of " + name.encode())
    result = _run(tmp_path, Path(name), "looks-around")
    assert result.status == "ok"
    assert f"core {b'bytes of ' + name.encode()!r}" in result.output
    assert f"target cudacore {commands.CORE}" in result.argv


def test_a_file_name_that_is_no_text_works_too(tmp_path: Path) -> None:
    name = os.path.join(os.fsencode(tmp_path), b"\xff\xfe.core")
    with open(name, "wb") as file:
        file.write(b"x")
    assert _run(tmp_path, Path(os.fsdecode(name)), "looks-around").status == "ok"


def test_what_is_no_plain_file_is_refused(tmp_path: Path) -> None:
    program = fake.install(tmp_path / "bin", "answers")
    os.mkfifo(tmp_path / "pipe")
    for path, why in (
        (tmp_path, "is not a plain file"),
        (tmp_path / "pipe", "is not a plain file"),
        (tmp_path / "gone", "cannot open"),
        (Path("nul\0byte"), "not a path"),
    ):
        result = run_session(path, program)
        assert result.status == "refused"
        assert result.detail is not None
        assert why in result.detail
    assert fake.pids(program) == []


def test_the_debugger_sees_a_private_world(
    tmp_path: Path, dump: Path, temp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    monkeypatch.setenv("PATH", f".::relative:{os.environ['PATH']}")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/lib")
    program = fake.install(tmp_path / "bin", "looks-around")
    (tmp_path / "bin" / "cuobjdump").symlink_to("/bin/true")
    # The limits are set from outside a moment after the start, which the slow start of Python covers.
    result = run_session(dump, program)
    lines = dict(line.partition(" ")[::2] for line in result.output.splitlines() if " " in line)
    env = eval(lines["env"])
    assert not {"OPENAI_API_KEY", "CUDA_VISIBLE_DEVICES"} & set(env)
    assert env["LD_LIBRARY_PATH"] == "/opt/lib"
    assert (env["HOME"], env["TMPDIR"]) == ("home", "tmp")
    assert all(os.path.isabs(part) for part in env["PATH"].split(":")[1:])
    assert env["PATH"].split(":")[0] == "tools"
    assert lines["tools"].split("'")[1] == "cuobjdump"
    assert lines["stdin"] == "''"
    assert lines["session"] == "True"
    assert eval(lines["limits"])[0] == 0
    assert eval(lines["argv"])[:2] == ["-nx", "-batch"]
    assert list(temp.iterdir()) == []


def test_without_a_temporary_folder_the_session_fails_politely(
    tmp_path: Path, dump: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "not there"))
    result = run_session(dump, fake.install(tmp_path / "bin", "answers"))
    assert result.status == "failed"
    assert result.detail == "no room to run cuda-gdb in: No such file or directory"


def test_output_is_streamed_to_a_listener(tmp_path: Path, dump: Path) -> None:
    pieces: list[bytes] = []
    result = _run(tmp_path, dump, "answers", transcript=SHARED, on_output=pieces.append)
    assert b"".join(pieces).decode() == result.output


def test_a_dump_that_cuda_gdb_cannot_read_is_a_failure_with_its_words(tmp_path: Path, dump: Path) -> None:
    def runner(argv: object, env: object, cwd: str, limits: Limits, listener: object) -> Outcome:
        text = f"Opening GPU coredump: {cwd}/core\nFailed to read core file: {cwd}/core is odd\n==end\n"
        return Outcome(text.encode(), 0, 5.0)

    result = run_session(dump, Candidate("/x/cuda-gdb", "PATH", (12, 4)), runner=runner)  # type: ignore[arg-type]
    assert (result.status, result.detail) == ("failed", "Failed to read core file: core is odd")


def test_the_memory_limit_grows_with_the_dump(tmp_path: Path, dump: Path) -> None:
    seen: list[Limits] = []

    def runner(argv: object, env: object, cwd: str, limits: Limits, listener: object) -> Outcome:
        seen.append(limits)
        return Outcome(b"==end\n", 0, 5.0)

    for size in (1 << 10, 1 << 30):
        with dump.open("r+b") as file:
            file.truncate(size)
        run_session(dump, Candidate("/x/cuda-gdb", "PATH", (12, 4)), runner=runner, seconds=7)  # type: ignore[arg-type]
    small, big = seen
    assert small.memory_bytes is not None
    assert big.memory_bytes is not None
    assert small.memory_bytes > 8 << 30
    assert big.memory_bytes - small.memory_bytes > 3 << 30
    assert big.seconds == 7


def test_the_result_fits_the_report(tmp_path: Path, dump: Path) -> None:
    status = _run(tmp_path, dump, "stops-early", transcript="hello").reader_status()
    assert (status.status, status.version, status.exit_code) == ("failed", "12.4", 3)
    assert status.tail == "hello"
    assert status.argv[1] == "-nx"
