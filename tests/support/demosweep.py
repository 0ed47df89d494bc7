"""A fast sweep of the demo server, whose planted bug needs two levers at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GUILTY = ("cudagraph-mode", "moe-backend")
HARMLESS = ("attention-backend", "kv-cache-dtype", "prefix-caching")
IGNORED = "linear-backend"
"""The demo server has no such option; the variable that older releases had is unknown to it."""

PLAN = """
name = "planted"
seed = 7

[levers]
cudagraph-mode = ["NONE"]
moe-backend = ["marlin"]
attention-backend = ["TRITON_ATTN"]
kv-cache-dtype = ["fp8"]
prefix-caching = ["off"]
linear-backend = ["marlin"]

[budget]
baseline-faults = 4
interleave = 2
run-for = "40s"
run-exposure = 12000

[load]
clients = 4
input-tokens = "16:64"
output-tokens = "8:32"
canary-every = 0
fast = true

[remote]
gpus = 1
"""


def demo_command(bug_every: int = 400, *more: str) -> list[str]:
    """The demo server with its planted bug, at a step a millisecond."""
    return [
        sys.executable,
        "-m",
        "crashlab.demo",
        "--port",
        "{port}",
        "--bug-every",
        str(bug_every),
        "--step-ms",
        "1",
        "--startup",
        "0.1",
        *more,
    ]


def environment() -> dict[str, str]:
    """As a user's shell, without what the test run itself may have set."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA_", "VLLM_", "CRASHLAB_"))}
    env["PYTHONPATH"] = str(ROOT)
    env["CRASHLAB_TRACEBACK"] = "1"
    return env


def start(folder: Path, arguments: list[str], log: Path) -> subprocess.Popen[bytes]:
    """``crashlab sweep ARGUMENTS`` in the background, in a session of its own; what it says goes to ``log``."""
    with log.open("ab") as err:
        return subprocess.Popen(
            [sys.executable, "-m", "crashlab", "sweep", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=err,
            env=environment(),
            cwd=folder,
            start_new_session=True,
        )
