#!/usr/bin/env python3
"""Proves `crashlab sweep` against a real vLLM with a planted fault: CUDA graphs on and off, two kinds of dumps,
two batch shapes, and for each arm the configuration that was really in effect.

    PYTHONPATH=. python3 scripts/gpu/accept_sweep.py --out FOLDER --server-cmd 'vllm serve MODEL' \\
        --env NAME=VALUE [--kernel NAME] [--budget 560]

`--server-cmd` starts the server (`--port {port}` is appended where it is missing). What plants the fault is a plug-in
of your own, switched on by `--env`; it has to fault whatever the levers say. FOLDER gets `accept_sweep.json`, the
sweep's report in every form, its plan and its journal. Exit code 0: all right.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPTS))
sys.path.insert(0, str(SCRIPTS.parents[1]))
sys.dont_write_bytecode = True

from proof.machine import describe  # noqa: E402
from proof.table import Table  # noqa: E402
from proof.wrap import crashlab, environment  # noqa: E402

SMALL = "8"
FULL_FLAGS = "skip_nonrelocated_elf_images"
LIGHT_FLAGS = ",".join(
    [FULL_FLAGS, *(f"skip_{part}_memory" for part in ("global", "shared", "local", "constbank"))]
)
PLAN = f"""
name = "planted"

[baseline]
cudagraph-mode = "FULL_DECODE_ONLY"
dump-flags = "{LIGHT_FLAGS}"

[levers]
cudagraph-mode = ["NONE"]
dump-flags = ["{FULL_FLAGS}"]
max-num-seqs = ["{SMALL}"]

[budget]
baseline-faults = 2
arm-faults = 1
max-runs = 1
max-baseline-runs = 3
interleave = 0
run-for = "150s"

[load]
shape = "decode-heavy"
clients = 12
input-tokens = "32:256"
output-tokens = "16:96"
canary-every = 0
ready-within = "240s"
fast = true

[[lever]]
id = "dump-flags"
title = "What a GPU dump keeps"
confounds = ["A full dump takes minutes, in which nothing is served."]
[[lever.way]]
variable = "CUDA_COREDUMP_GENERATION_FLAGS"
[[lever.show]]
source = "environment"
"""
LIGHT, FULL = "baseline", f"dump-flags={FULL_FLAGS}"
GRAPHS_OFF, FEW = "cudagraph-mode=NONE", f"max-num-seqs={SMALL}"
KEPT = ("report.json", "report.txt", "report.html", "plan.toml", "journal.jsonl", "sweep.json")


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--server-cmd", required=True)
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--kernel", default="", help="part of the planted kernel's name in the signature key")
    parser.add_argument("--budget", type=float, default=560.0, help="seconds for all")
    return parser.parse_args(argv)


def sweep(options: argparse.Namespace, folder: Path) -> int | None:
    """Run it, ended gently when the time is up; its exit code."""
    (folder / "plan.toml").write_text(PLAN)
    server = shlex.split(options.server_cmd)
    if not any("{port}" in word for word in server):
        server += ["--port", "{port}"]
    env = {**environment(), **dict(text.partition("=")[::2] for text in options.env)}
    paths = [
        environment()["PYTHONPATH"],
        *(t.partition("=")[2] for t in options.env if t.startswith("PYTHONPATH=")),
    ]
    env["PYTHONPATH"] = os.pathsep.join(paths)
    words = crashlab("sweep", "--out", str(folder / "sweep"), str(folder / "plan.toml"), "--", *server)
    process = subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    for wait, number in (
        (options.budget - 60.0, signal.SIGINT),
        (40.0, signal.SIGINT),
        (20.0, signal.SIGKILL),
    ):
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(wait)
        process.send_signal(number)
    return process.wait()


def runs_of(result: dict[str, Any], arm: str) -> list[dict[str, Any]]:
    return [run for run in result.get("runs", []) if run["arm"] == arm]


def effective(run: dict[str, Any], lever: str) -> dict[str, Any]:
    return next((one for one in run.get("effective", []) if one["lever"] == lever), {})


def dump_bytes(folder: Path, run: dict[str, Any]) -> int:
    cores = folder / "sweep" / str(run.get("rundir")) / "cores"
    return sum(path.stat().st_size for path in cores.glob("*")) if cores.is_dir() else 0


def check(result: dict[str, Any], folder: Path, kernel: str) -> dict[str, list[str]]:
    """What differs from what was planted, by arm."""
    wrong: dict[str, list[str]] = {}
    wanted = {
        LIGHT: {"cudagraph-mode": "FULL_DECODE_ONLY"},
        GRAPHS_OFF: {"cudagraph-mode": "NONE"},
        FULL: {"cudagraph-mode": "FULL_DECODE_ONLY"},
        FEW: {"cudagraph-mode": "FULL_DECODE_ONLY", "max-num-seqs": SMALL},
    }
    for arm, values in wanted.items():
        said = wrong.setdefault(arm, [])
        runs = runs_of(result, arm)
        if not runs:
            said.append("no run")
            continue
        for run in runs:
            if run["outcome"] != "fault":
                said.append(f"outcome {run['outcome']} ({run.get('note')}), expected fault")
            elif kernel not in (run.get("key") or ""):
                said.append(f"key {run.get('key')}, expected {kernel}")
            for lever, value in values.items():
                one = effective(run, lever)
                if one.get("value") != value:
                    said.append(f"{lever} was {one.get('value')} by {one.get('source')}, expected {value}")
    light, full = (sum(dump_bytes(folder, run) for run in runs_of(result, arm)[:1]) for arm in (LIGHT, FULL))
    if full <= 2 * light:
        wrong[FULL].append(f"its dump has {full:,} bytes, the light one {light:,}")
    return wrong


def main(argv: list[str] | None = None) -> int:
    options = parse(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    table = Table()
    with tempfile.TemporaryDirectory(prefix="accept-") as place:
        folder = Path(place)
        began = time.monotonic()
        code = sweep(options, folder)
        seconds = time.monotonic() - began
        try:
            result = json.loads((folder / "sweep" / "report.json").read_text())
        except (OSError, ValueError) as error:
            table.add("sweep", [f"no result: {error}"], seconds, code=code)
            result = {}
        else:
            table.add("sweep", [] if code == 0 else [f"exit code {code}, expected 0"], seconds, code=code)
        for arm, wrong in check(result, folder, options.kernel).items():
            runs = runs_of(result, arm)
            table.add(arm[:18], wrong, 0.0, runs=runs, dump_bytes=[dump_bytes(folder, run) for run in runs])
        for name in KEPT:
            if (folder / "sweep" / name).is_file():
                shutil.copy(folder / "sweep" / name, options.out / name)
    (options.out / "accept_sweep.json").write_text(
        json.dumps({"machine": describe(), "rows": table.rows}, indent=1, default=str) + "\n"
    )
    return table.summary()


if __name__ == "__main__":
    sys.exit(main())
