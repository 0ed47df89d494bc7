"""``crashlab demo`` and ``crashlab soak`` as a user runs them, against the simulated server."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from crashlab.report.fromrundir import analyze_rundir
from crashlab.report.options import AnalyzeOptions
from crashlab.soak.outcome import EVENT, from_fields
from tests.support.runs import wait_gone, wait_until

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow


def crashlab(*arguments: str, timeout: float = 120.0, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "crashlab", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def server_argv(port: int, scenario: str = "none", *arguments: str) -> list[str]:
    return [
        sys.executable, "-m", "crashlab.demo", "--port", str(port), "--scenario", scenario, "--startup", "0",
        *arguments,
    ]  # fmt: skip


def report_of(folder: Path) -> dict[str, Any]:
    value = json.loads((folder / "report.json").read_text())
    assert isinstance(value, dict)
    return value


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("scenario", "verdict", "words"),
    [
        ("fault", "gpu-fault", ("epilogue_store", "STS.128 [R0], R4", "asynchronous: not causal")),
        ("stall", "stall", ("hang_kernel", "while /health says 200", "spinning")),
        ("garbage", "garbage", ("'!' repeated", "nothing faulted")),
        ("exit0", "host-death", ("exit code 0", "nothing tells of a GPU fault")),
        ("slow-prefill", "no-fault", ("Nothing was found", "It does not mean")),
        ("never-ready", "never-ready", ("never became ready",)),
    ],
)
def test_each_scenario_of_the_demo_finds_what_was_planted_in_half_a_minute(
    tmp_path: Path, scenario: str, verdict: str, words: tuple[str, ...]
) -> None:
    began = time.monotonic()
    out = tmp_path / "run"
    done = crashlab("demo", "--scenario", scenario, "--out", str(out))
    seconds, text = time.monotonic() - began, " ".join(done.stdout.split())
    assert done.returncode == 0, done.stderr
    for word in words:
        assert word in text
    assert "as planted" in done.stderr
    assert report_of(out)["verdict"]["kind"] == verdict
    loaded = os.getloadavg()[0] / (os.cpu_count() or 1)
    assert seconds < 30 * max(1.0, loaded), "the whole pipeline in under half a minute on an idle machine"
    wait_gone(str(out))


def test_the_run_directory_of_a_soak_can_be_analysed_again_and_holds_the_load(tmp_path: Path) -> None:
    out = tmp_path / "run"
    port = free_port()
    done = crashlab(
        "soak", "--clients", "8", "--shape", "mixed", "--input-tokens", "8:64", "--output-tokens", "4:32", "--json",
        "--out", str(out), "--", *server_argv(port, "fault", "--after", "150"),
    )  # fmt: skip
    assert done.returncode == 10, done.stderr
    report = json.loads(done.stdout)
    assert report["verdict"]["kernel"]["mangled"] == "_Z14epilogue_storeILi128EEvPfPK6float4i"
    assert report["run"]["exposure"]["engine_steps"] > 100
    assert report["run"]["exit_code"] == 0, "the server's own exit code lies"
    requests = rows(out / "requests.jsonl")
    assert requests[0]["record"] == "load"
    assert {"stream-error"} <= {row.get("error") for row in requests}
    events = {row["event"] for row in rows(out / "events.jsonl")}
    assert {"soak-ready", "soak-state", "soak-ending", "soak-outcome", "analysed"} <= events
    again = analyze_rundir(out, AnalyzeOptions(fast=True))
    assert hex(again.verdict.pc or 0) == report["verdict"]["pc"]
    kept = [from_fields(row) for row in rows(out / "events.jsonl") if row["event"] == EVENT]
    assert kept[0] is not None
    assert dict(kept[0].exposure)["engine_steps"] == report["run"]["exposure"]["engine_steps"]


def test_repeat_restarts_counts_faults_and_reports_steps_to_each(tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = crashlab(
        "soak", "--repeat", "2", "--fast", "--clients", "4", "--output-tokens", "4:16", "--canary-every", "0",
        "--out", str(out), "--", *server_argv(free_port(), "exit0", "--after", "200"),
    )  # fmt: skip
    assert done.returncode == 16, done.stderr
    assert "2 of 2 attempts ended in a failure" in done.stderr
    assert done.stderr.count("engine steps: The server died under load") >= 2
    assert report_of(out / "cases" / "001")["verdict"]["kind"] == "host-death"
    assert report_of(out / "cases" / "002")["verdict"]["kind"] == "host-death"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    port = free_port()
    process = subprocess.Popen(
        [*server_argv(port), "--step-ms", "5"], cwd=ROOT, stderr=(tmp_path / "server.log").open("wb")
    )
    try:
        yield process, f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def test_a_running_server_is_loaded_and_left_alone(
    tmp_path: Path, server: tuple[subprocess.Popen[bytes], str]
) -> None:
    process, url = server
    out = tmp_path / "run"
    done = crashlab("soak", "--url", url, "--requests", "60", "--json-lines", "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert "Nothing was found" in done.stdout
    progress = [json.loads(line) for line in done.stderr.splitlines()]
    assert {row["event"] for row in progress} >= {"progress"}
    assert process.poll() is None
    assert len([r for r in rows(out / "requests.jsonl") if r.get("lane", -1) >= 0]) == 60


def test_a_recorded_load_is_replayed_against_another_server(
    tmp_path: Path, server: tuple[subprocess.Popen[bytes], str]
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    common = ("soak", "--url", server[1], "--canary-every", "0")
    done = crashlab(*common, "--requests", "40", "--shape", "fresh", "--seed", "9", "--out", str(first))
    assert done.returncode == 0, done.stderr
    done = crashlab(*common, "--replay", str(first), "--out", str(second))
    assert done.returncode == 0, done.stderr

    def sent(folder: Path) -> set[tuple[int, int, int]]:
        found = rows(folder / "requests.jsonl")[1:]
        return {(row["lane"], row["number"], row["prompt_chars"]) for row in found}

    assert sent(first) == sent(second)


def test_any_command_can_be_the_load(tmp_path: Path, server: tuple[subprocess.Popen[bytes], str]) -> None:
    script = tmp_path / "load.py"
    script.write_text(
        "import json, sys, urllib.request\n"
        "body = json.dumps({'model': sys.argv[2], 'prompt': 'a b c', 'max_tokens': 20}).encode()\n"
        "urllib.request.urlopen(urllib.request.Request(sys.argv[1] + '/v1/completions', body)).read()\n"
    )
    done = crashlab(
        "soak", "--url", server[1], "--for", "4s", "--out", str(tmp_path / "run"), "-v",
        "--load-cmd", f"{sys.executable} {script} {{url}} {{model}}",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "The load command ran" in done.stdout
    steps = report_of(tmp_path / "run")["run"]["exposure"]["engine_steps"]
    assert steps >= 20, "exposure comes from the server's own counters"


def test_a_load_command_that_cannot_work_is_no_finding(
    tmp_path: Path, server: tuple[subprocess.Popen[bytes], str]
) -> None:
    done = crashlab("soak", "--url", server[1], "--load-cmd", "false", "--out", str(tmp_path / "run"))
    assert done.returncode == 15, done.stderr
    assert "failed 3 times at once" in done.stdout


def test_an_engine_that_is_stopped_is_a_stall_and_goes_on_when_it_is_continued(
    tmp_path: Path, server: tuple[subprocess.Popen[bytes], str]
) -> None:
    process, url = server
    out = tmp_path / "run"
    soak = subprocess.Popen(
        [
            sys.executable, "-m", "crashlab", "soak", "--url", url, "--for", "40s", "--stall-after", "3s",
            "--on-stall", "note", "--out", str(out),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )  # fmt: skip

    def wait_for(event: str) -> None:
        log = out / "events.jsonl"
        wait_until(lambda: log.exists() and event in log.read_text())

    wait_for("soak-ready")
    wait_until(lambda: len(rows(out / "requests.jsonl")) > 20)
    engine = psutil.Process(process.pid).children()[0]
    engine.send_signal(signal.SIGSTOP)
    began = time.monotonic()
    wait_for('"soak-stall"')
    assert 2.0 < time.monotonic() - began < 40.0
    engine.send_signal(signal.SIGCONT)
    wait_for("soak-stall-ended")
    text, _ = soak.communicate(timeout=120)
    assert soak.returncode == 0
    assert "Nothing was found" in text
    stall = next(r for r in rows(out / "events.jsonl") if r["event"] == "soak-stall")
    assert stall["health"] == 200


def test_one_interrupt_ends_the_load_reports_and_leaves_no_process(tmp_path: Path) -> None:
    out, port = tmp_path / "run", free_port()
    soak = subprocess.Popen(
        [sys.executable, "-m", "crashlab", "soak", "--out", str(out), "--", *server_argv(port)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    wait_until(lambda: (out / "requests.jsonl").exists() and len(rows(out / "requests.jsonl")) >= 12)
    soak.send_signal(signal.SIGINT)
    text, _ = soak.communicate(timeout=60)
    assert soak.returncode == 130
    assert "interrupted by the user" in text
    assert report_of(out)["verdict"]["kind"] == "no-fault"
    assert (out / "host" / "001-metrics.txt").exists()
    wait_until(
        lambda: not [p for p in psutil.process_iter(["cmdline"]) if str(port) in (p.info["cmdline"] or ())]
    )


@pytest.mark.parametrize("requests", [1, 40, 200])
def test_killed_under_load_everything_that_was_seen_is_readable(tmp_path: Path, requests: int) -> None:
    out, port = tmp_path / "run", free_port()
    soak = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "crashlab",
            "soak",
            "--out",
            str(out),
            "--",
            *server_argv(port),
            "--step-ms",
            "3",
        ],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    log = out / "requests.jsonl"
    wait_until(
        lambda: (
            log.exists()
            and sum(b'"lane": -1' not in line for line in log.read_bytes().splitlines()) > requests
        )
    )
    os.kill(soak.pid, signal.SIGKILL)
    soak.wait()
    assert len(rows(log)) > requests
    report = analyze_rundir(out, AnalyzeOptions(fast=True))
    assert any("no end" in note for note in report.provenance)
    done = crashlab("soak", "--url", f"http://127.0.0.1:{port}", "--replay", str(out), "--requests", "3",
                    "--out", str(tmp_path / "again"))  # fmt: skip
    assert done.returncode == 0, "the server goes on, and the log of the killed soak can be replayed"
    for process in psutil.process_iter(["cmdline"]):
        if str(port) in (process.info["cmdline"] or ()):
            process.terminate()
    wait_gone(str(out))


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("soak",), 2, "What should be loaded?"),
        (("soak", "--url", "x", "--for", "5 parsecs"), 2, "no duration"),
        (("soak", "--url", "x", "--input-tokens", "9:3"), 2, "no range"),
        (("soak", "--url", "x", "--extra", "[1]"), 2, "JSON object"),
        (("soak", "--url", "x", "--extra", "{"), 2, "no JSON object"),
        (("soak", "--url", "http://127.0.0.1:1", "--prompts", "/nonexistent"), 3, "Cannot read the prompts"),
        (("soak", "--", "/nonexistent/server"), 3, "cannot be started"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_reason(
    tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    if "--" in arguments:
        arguments = (arguments[0], "--out", str(tmp_path / "run"), *arguments[1:])
    done = crashlab(*arguments)
    assert done.returncode == code, done.stderr
    assert words.lower() in done.stderr.lower()
