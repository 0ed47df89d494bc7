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


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def soaking(out: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A soak around the real server."""
    argv = [
        sys.executable, "-m", "crashlab", "soak", *SMALL, *options, "--out", str(out), "--",
        str(VLLM), "serve", str(MODEL), "--served-model-name", "tiny", "--max-model-len", "1024",
        "--max-num-seqs", "32", "--port", str(free_port()),
    ]  # fmt: skip
    environment = {
        **os.environ,
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }
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
