"""Nobody has to read what is said: a closed pipe changes no exit code and ends no recording."""

from __future__ import annotations

import errno
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
import pytest

from crashlab.cli import voice
from crashlab.cli.demo import _free_port
from tests.support import corpus
from tests.support.command import run_cli

DEAD = "http://127.0.0.1:1"


def unread(*arguments: str, lines: int = 1) -> int:
    """``crashlab ARGUMENTS 2>&1 | head``: the reader leaves after so many lines."""
    command = [sys.executable, "-m", "crashlab", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        for _ in range(lines):
            process.stdout.readline()
        process.stdout.close()
        return process.wait(60)


def test_a_fault_is_caught_and_reported_though_nobody_reads_any_more(tmp_path: Path) -> None:
    server = (
        sys.executable, "-m", "crashlab.demo", "--port", str(_free_port()), "--startup", "0", "--step-ms", "3",
        "--scenario", "fault", "--after", "80",
    )  # fmt: skip
    out = tmp_path / "run"
    assert unread("soak", "--fast", "--clients", "4", "--out", str(out), "--", *server) == 10
    assert json.loads((out / "report.json").read_text())["verdict"]["kind"] == "gpu-fault"
    assert (out / "manifest.json").exists()


@pytest.mark.parametrize("options", [(), ("--json-lines", "--json")])
def test_a_soak_that_nobody_reads_keeps_its_exit_code(tmp_path: Path, options: tuple[str, ...]) -> None:
    arguments = ("--url", DEAD, "--ready-within", "1s", "--out", str(tmp_path / "run"))
    assert unread("soak", *arguments, *options) == 14


def test_a_quality_run_that_nobody_reads_keeps_its_exit_code(tmp_path: Path) -> None:
    arguments = ("--a-url", DEAD, "--ready-within", "1s", "--questions", "20", "--out", str(tmp_path / "run"))
    assert unread("quality", *arguments) == 14
    assert (tmp_path / "run" / "quality.json").exists()


class _Broken:
    """A stream whose reader has gone."""

    def __init__(self, code: int = errno.EPIPE) -> None:
        self._code = code

    def write(self, text: str) -> int:
        raise OSError(self._code, "gone")

    def flush(self) -> None:
        raise OSError(self._code, "gone")

    def isatty(self) -> bool:
        return True


def test_a_library_that_draws_on_a_broken_stream_goes_on() -> None:
    stream = voice.Unbroken(_Broken())
    assert stream.write("abc") == 3
    stream.flush()
    assert stream.isatty()


@pytest.mark.parametrize("code", [errno.EPIPE, errno.EIO, errno.ENOSPC])
def test_a_line_that_cannot_be_written_is_dropped(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def echo(*_: Any, **__: Any) -> None:
        raise OSError(code, "gone")

    monkeypatch.setattr(click, "echo", echo)
    monkeypatch.setattr(sys, "stderr", io.StringIO())  # pytest's own descriptor must not be let go
    assert not voice.tell("anything")


def test_a_result_that_finds_no_space_is_an_error_and_one_without_reader_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    codes = [errno.EPIPE, errno.ENOSPC]

    def echo(*_: Any, **__: Any) -> None:
        raise OSError(codes.pop(0), "gone")

    monkeypatch.setattr(click, "echo", echo)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert not voice.result("text")
    with pytest.raises(OSError, match="gone"):
        voice.result("text")


def test_what_waits_in_the_buffer_of_a_broken_pipe_does_not_fail_again() -> None:
    read, write = os.pipe()
    os.close(read)
    stream = os.fdopen(write, "w")
    stream.write("text")
    with pytest.raises(BrokenPipeError) as caught:
        stream.flush()
    voice._let_go(stream, caught.value)
    stream.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_soak_that_is_ended_by_a_signal_leaves_with_130_and_its_report(tmp_path: Path, number: int) -> None:
    out = tmp_path / "run"
    server = [sys.executable, "-m", "crashlab.demo", "--port", str(_free_port()), "--startup", "0"]
    command = [sys.executable, "-m", "crashlab", "soak", "--fast", "--clients", "2", "--out", str(out), "--"]
    assert _interrupted([*command, *server], out, "soak-ready", number) == 130
    assert json.loads((out / "report.json").read_text())["run"]["outcome"] == "no-fault"


def test_an_interrupt_before_readiness_says_that_nothing_was_tested(tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [sys.executable, "-m", "crashlab", "soak", "--url", DEAD, "--out", str(out)]
    assert _interrupted(command, out, "", signal.SIGINT) == 130
    verdict = json.loads((out / "report.json").read_text())["verdict"]
    assert verdict["headline"] == "Interrupted before the server was ready: nothing was tested"
    assert verdict["kind"] == "inconclusive"
    assert "absence of evidence" not in json.dumps(verdict)


def test_an_interrupted_quality_run_says_so_and_that_b_was_not_asked(tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [sys.executable, "-m", "crashlab", "quality", "--a-url", DEAD, "--b-url", "http://127.0.0.1:2"]
    assert _interrupted([*command, "--out", str(out)], out, "", signal.SIGINT) == 130
    verdict = json.loads((out / "quality.json").read_text())["verdict"]
    assert verdict["headline"] == "Interrupted before arm A answered a question; arm B was not asked"
    assert verdict["kind"] == "inconclusive"


def test_an_interrupted_demo_leaves_with_130(tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [sys.executable, "-m", "crashlab", "demo", "--scenario", "slow-prefill", "--out", str(out)]
    assert _interrupted(command, out, "soak-ready", signal.SIGINT) == 130


def _interrupted(command: list[str], out: Path, event: str, number: int) -> int:
    """Start, wait until the record names the event (else its questions or its start), and send the signal."""
    before = signal.signal(number, signal.SIG_DFL)  # nohup ignores a hang-up, and children inherit that
    try:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    finally:
        signal.signal(number, before)
    try:
        until = time.monotonic() + 30
        while time.monotonic() < until and process.poll() is None:
            record = out / "events.jsonl"
            if (out / "run.json").exists() and record.exists() and event in record.read_text():
                break
            time.sleep(0.1)
        time.sleep(1.0)
        process.send_signal(number)
        return process.wait(60)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("soak", "--url", "ftp://x"), 2, "over http or https, not ftp"),
        (("soak", "--url", "http://"), 2, "it names no host"),
        (("soak", "--url", ""), 2, "it names no host"),
        (("soak", "--url", "http://127.0.0.1:99999"), 2, "ort out of range"),
        (("quality", "--a-url", "ftp://x"), 2, "over http or https, not ftp"),
        (("quality", "--a-url", ""), 2, "it names no host"),
        (("soak", "--url", DEAD, "--temperature", "nan"), 2, "nan is not a finite number"),
        (("soak", "--url", DEAD, "--temperature", "inf"), 2, "inf is not a finite number"),
        (("quality", "--a-url", DEAD, "--alpha", "nan"), 2, "nan is not a finite number"),
        (("soak", "--url", DEAD, "--replay", "no-such-log"), 3, "cannot be replayed"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_starts(
    tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = run_cli(arguments[0], "--out", str(tmp_path / "run"), *arguments[1:])
    assert done.code == code
    assert words in done.err
    assert not (tmp_path / "run").exists()


def test_lm_eval_is_looked_for_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run_cli("quality", "--a-url", DEAD, "--lm-eval", "gsm8k", "--out", str(tmp_path / "run"))
    assert done.code == 3
    assert "lm-eval is not installed here" in done.err
    assert not (tmp_path / "run").exists()


def test_a_result_file_has_the_format_of_its_suffix(tmp_path: Path) -> None:
    for name, begins in (("q.html", "<!doctype html>"), ("q.json", "{"), ("q.md", "## "), ("q.txt", "Arm A")):
        out = ("--out", str(tmp_path / f"{name}.run"), "-o", str(tmp_path / name))
        done = run_cli("quality", "--a-url", DEAD, "--ready-within", "0s", "--questions", "20", *out)
        assert done.code == 14, done.err
        assert (tmp_path / name).read_text().startswith(begins)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("-o", "x.pdf"), "Nothing here writes .pdf."),
        (("-o", "/nowhere/x.html"), "Cannot write /nowhere/x.html."),
        (("--json", "--format", "md"), "contradict each other"),
    ],
)
def test_a_result_that_could_not_be_written_is_refused_before_anything_is_asked(
    tmp_path: Path, options: tuple[str, ...], says: str
) -> None:
    done = run_cli("quality", "--a-url", DEAD, "--out", str(tmp_path / "run"), *options)
    assert (done.code, says in done.err) == (2, True), done.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("options", [("--json",), ("--fast",), ("--json", "--no-such-option")])
def test_a_closed_standard_output_is_said_to_be_one(options: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "crashlab", "analyze", str(corpus.path("oob_load")), *options]
    done = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *command], capture_output=True, text=True, timeout=60
    )
    if "--no-such-option" in options:
        assert (done.returncode, "No such option" in done.stderr) == (2, True)
        return
    assert done.returncode == 3
    assert "the output could not be written: Bad file descriptor" in done.stderr
    assert "Standard output is closed" in done.stderr
    assert "internal error" not in done.stderr


def test_with_closed_streams_the_evidence_goes_into_the_evidence_files_only(tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [
        sys.executable,
        "-m",
        "crashlab",
        "run",
        "--out",
        str(out),
        "--",
        "sh",
        "-c",
        "echo a; echo b >&2",
    ]
    assert subprocess.run(["sh", "-c", '"$@" <&- >&- 2>&-', "sh", *command], timeout=60).returncode == 0
    for row in (out / "events.jsonl").read_text().splitlines():
        json.loads(row)
    assert (out / "output" / "001.stdout.log").read_text() == "a\n"
    assert (out / "output" / "001.stderr.log").read_text() == "b\n"
