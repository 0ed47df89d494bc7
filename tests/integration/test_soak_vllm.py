"""``crashlab soak`` against the real vLLM on the CPU (``scripts/vllm-cpu`` builds it).

CRASHLAB_VLLM is the path of its ``vllm``, CRASHLAB_VLLM_MODEL the folder of a model (``scripts/tiny-model``);
CRASHLAB_VLLM_SECONDS the length of each soak that must not raise an alarm (default 60).
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[2]
VLLM, MODEL = os.environ.get("CRASHLAB_VLLM"), os.environ.get("CRASHLAB_VLLM_MODEL")
SECONDS = os.environ.get("CRASHLAB_VLLM_SECONDS", "60")
pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not VLLM or not MODEL, reason="CRASHLAB_VLLM and CRASHLAB_VLLM_MODEL are not set"),
]
START_SECONDS = 900.0
SMALL = ("--clients", "4", "--input-tokens", "32:256", "--output-tokens", "8:64")

ENVIRONMENT = {
    **os.environ,
    "VLLM_CPU_KVCACHE_SPACE": "2",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1",
    "HF_HUB_OFFLINE": "1",
}


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def soaking(
    out: Path, *options: str, server: tuple[str, ...] = (), **variables: str
) -> Iterator[subprocess.Popen[str]]:
    """A soak around the real server; ``server`` are further arguments of it."""
    argv = [
        sys.executable, "-m", "crashlab", "soak", *SMALL, *options, "--out", str(out), "--",
        str(VLLM), "serve", str(MODEL), "--served-model-name", "tiny", "--max-model-len", "1024",
        "--max-num-seqs", "32", "--port", str(free_port()), *server,
    ]  # fmt: skip
    environment = {**ENVIRONMENT, **variables}
    process = subprocess.Popen(argv, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=300)


def events(out: Path) -> list[dict[str, Any]]:
    path = out / "events.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]


def wait_for(out: Path, name: str, seconds: float) -> dict[str, Any]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for event in events(out):
            if event["event"] == name:
                return event
        time.sleep(0.2)
    raise AssertionError(f"no {name} within {seconds:g} s")


def engine_of(soak: subprocess.Popen[str]) -> psutil.Process:
    """The process that runs the model: vLLM names it, else it is the busiest below the API server."""
    below = psutil.Process(soak.pid).children(recursive=True)
    named = [p for p in below if "EngineCore" in p.name() or "EngineCore" in " ".join(p.cmdline())]
    return named[0]


@pytest.mark.parametrize("shape", ["mixed", "growing", "cancel-churn"])
def test_a_healthy_server_raises_no_alarm(tmp_path: Path, shape: str) -> None:
    out = tmp_path / "run"
    with soaking(out, "--shape", shape, "--for", f"{SECONDS}s") as soak:
        text, _ = soak.communicate(timeout=START_SECONDS + float(SECONDS) + 300)
    assert soak.returncode == 0, text
    assert "Nothing was found" in text
    assert not [e for e in events(out) if e["event"] == "soak-stall"]
    exposure = json.loads((out / "report.json").read_text())["run"]["exposure"]
    assert exposure["engine_steps"] > 0
    assert exposure["requests"] > 0


def test_a_stopped_engine_is_a_stall_while_health_says_200_and_goes_on_when_continued(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with soaking(out, "--stall-after", "15s", "--on-stall", "note", "--for", "1h") as soak:
        wait_for(out, "soak-ready", START_SECONDS)
        time.sleep(5.0)
        stopped = [engine_of(soak), *engine_of(soak).children(recursive=True)]
        for process in stopped:
            process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        stall = wait_for(out, "soak-stall", 90.0)
        assert 10.0 <= time.monotonic() - began <= 60.0
        assert stall["health"] == 200
        for process in stopped:
            process.send_signal(signal.SIGCONT)
        wait_for(out, "soak-stall-ended", 60.0)


def test_a_killed_engine_is_a_host_death_whatever_the_api_server_exits_with(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with soaking(out, "--for", "1h") as soak:
        wait_for(out, "soak-ready", START_SECONDS)
        time.sleep(5.0)
        engine_of(soak).send_signal(signal.SIGKILL)
        text, _ = soak.communicate(timeout=300)
    assert soak.returncode == 16, text
    assert "died under load" in text


def test_activations_that_turn_into_nan_are_garbage_though_nothing_is_logged(tmp_path: Path) -> None:
    out = tmp_path / "run"
    path = os.pathsep.join([str(ROOT / "scripts" / "gpu" / "nan_plugin"), os.environ.get("PYTHONPATH", "")])
    variables = {"PYTHONPATH": path, "VLLM_PLUGINS": "crashlab_nan", "CRASHLAB_NAN_AFTER": "2000"}
    with soaking(out, "--for", "10m", server=("--enforce-eager",), **variables) as soak:
        text, _ = soak.communicate(timeout=START_SECONDS + 600)
    assert soak.returncode == 13, text
    report = json.loads((out / "report.json").read_text())
    assert report["verdict"]["kind"] == "garbage"
    assert report["run"]["exposure"]["engine_steps"] > 500, "it was healthy first"


CONTEXT = 131_072
AIM_SECONDS, STALL_SECONDS = 100.0, 120.0
"""A prefill of more than a minute is wanted. On a loaded machine it may take longer than the stall limit."""


def prefill_seconds(url: str, tokens: int) -> float:
    """How long the server takes for one prompt of so many tokens."""
    body = {"model": "tiny", "prompt": [5 + i % 900 for i in range(tokens)], "max_tokens": 1}
    request = urllib.request.Request(
        f"{url}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    began = time.monotonic()
    with urllib.request.urlopen(request, timeout=600) as answer:
        answer.read()
    return time.monotonic() - began


@pytest.fixture
def unchunked_server(tmp_path: Path) -> Iterator[str]:
    """A server that prefills a prompt of any length in one step, and answers nothing meanwhile."""
    port = free_port()
    argv = [
        str(VLLM), "serve", str(MODEL), "--served-model-name", "tiny", "--max-model-len", str(CONTEXT),
        "--max-num-seqs", "4", "--max-num-batched-tokens", str(CONTEXT), "--no-enable-chunked-prefill",
        "--enforce-eager", "--port", str(port),
    ]  # fmt: skip
    with (tmp_path / "server.log").open("wb") as log:
        process = subprocess.Popen(argv, env=ENVIRONMENT, stdout=log, stderr=log)
    url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + START_SECONDS
    try:
        while True:
            try:
                prefill_seconds(url, 8)
                break
            except (urllib.error.URLError, OSError):
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(1.0)
        yield url
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(120)


def test_a_single_prefill_of_more_than_a_minute_is_prefilling_and_no_stall(
    tmp_path: Path, unchunked_server: str
) -> None:
    out, size = tmp_path / "run", 24_000
    prefill_seconds(unchunked_server, size)  # the first one of a size also compiles
    quadratic = (AIM_SECONDS / prefill_seconds(unchunked_server, size)) ** 0.5
    tokens = min(int(size * quadratic), 110_000)
    done = subprocess.run(
        [
            sys.executable, "-m", "crashlab", "soak", "--url", unchunked_server, "--clients", "1", "--shape", "fresh",
            "--input-tokens", str(tokens), "--output-tokens", "2", "--canary-every", "0", "--requests", "1",
            "--stall-after", f"{STALL_SECONDS:g}s", "--on-stall", "note", "--out", str(out),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (out / "requests.jsonl").read_text().splitlines()]
    sent, first = rows[-1]["sent"], rows[-1]["first"]
    if first < 60.0:
        pytest.skip(f"this machine prefills {tokens} tokens in {first:.0f} s")
    states = {event["to"]: event["m"] - sent for event in events(out) if event["event"] == "soak-state"}
    assert states["PREFILLING"] < 30.0
    assert states.get("STALLED", STALL_SECONDS) >= STALL_SECONDS - 2.0, "only the limit makes it a stall"
    samples = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert all(sample["health"] == 200 for sample in samples)
