"""The real vLLM on the CPU for integration tests: ``scripts/vllm-cpu`` and ``scripts/train-tiny-model``."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VLLM = os.environ.get("CRASHLAB_VLLM", "")
TRAINED = os.environ.get("CRASHLAB_VLLM_TRAINED", "")
WHY_NOT = "CRASHLAB_VLLM and CRASHLAB_VLLM_TRAINED are not set"
READY_SECONDS = 900.0
ENVIRONMENT = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def serve(model: str, port: int) -> list[str]:
    """The command of a server; eager, which starts sooner on a CPU."""
    return [
        VLLM, "serve", model, "--served-model-name", "tiny", "--max-model-len", "1024", "--max-num-seqs", "32",
        "--enforce-eager", "--port", str(port),
    ]  # fmt: skip


@contextmanager
def running(model: str, log: Path) -> Iterator[int]:
    """A server that is ready; its port."""
    port = free_port()
    with log.open("wb") as file:
        server = subprocess.Popen(
            serve(model, port), env={**os.environ, **ENVIRONMENT}, stdout=file, stderr=file
        )
        try:
            _wait(port, server)
            yield port
        finally:
            server.terminate()
            try:
                server.wait(60)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _wait(port: int, server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until and server.poll() is None:
        with suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=5)
            return
        time.sleep(0.5)
    raise AssertionError("the server did not become ready")
