"""Runs of a sweep without a server: run directories as a soak leaves them, from rates of faults."""

from __future__ import annotations

import json
import math
import os
import random
from pathlib import Path

from crashlab.sweep.execute import Stop
from crashlab.sweep.facts import CLEAN, FAULT, ArmRun
from crashlab.sweep.job import Job
from crashlab.sweep.outcome import result_of
from crashlab.sweep.plan import Plan, read_plan
from tests.support.demosweep import GUILTY, PLAN

KEY = "v1|gpu-fault|X"
EVERY = 1000.0


def plan() -> Plan:
    """The demo's plan."""
    return read_plan(PLAN, "plan.toml", command=["server", "--port", "{port}"])


def leave_run(job: Job, outcome: str, steps: int, *, log: str = "", whole: bool = True) -> str:
    """Write a run directory for an outcome; its path. ``whole`` False: it was cut off."""
    path = Path(job.folder, job.rundir)
    (path / "output").mkdir(parents=True, exist_ok=True)
    seconds = steps / 1000
    events = [
        {"m": 1.0, "t": "2026-01-01T00:00:00.000Z", "event": "started", "attempt": 1, "pid": 1},
        {"m": 10.0, "event": "soak-ready", "attempt": 1},
        {"m": 10.0 + seconds, "event": "soak-ending", "attempt": 1},
        {"m": 11.0 + seconds, "event": "ended", "attempt": 1, "exit_code": 0},
        {"m": 11.0 + seconds, "event": "soak-outcome", "attempt": 1, "outcome": outcome, "why": "test"},
        {"m": 12.0 + seconds, "event": "run-ended", "exit_code": 0},
    ]
    kinds = {FAULT: "gpu-fault", CLEAN: "no-fault"}
    report = {
        "schema": "crashlab.report/1",
        "verdict": {"kind": kinds.get(outcome, outcome), "headline": f"it was {outcome}"},
        "signature_key": {"coarse": KEY},
        "run": {
            "started": "2026-01-01T00:00:00Z",
            "exposure": {"engine_steps": steps, "requests": steps // 10},
        },
        "environment": {"gpu": {"value": "NVIDIA H200", "source": "dump"}},
    }
    (path / "run.json").write_text('{"schema": "crashlab.run/1"}')
    (path / "events.jsonl").write_text("".join(json.dumps(e) + "\n" for e in events[: 6 if whole else 3]))
    (path / "output" / "001.stderr.log").write_text(log or log_of(job))
    (path / "requests.jsonl").write_text('{"record": "load"}\n')
    if whole:
        (path / "report.json").write_text(json.dumps(report))
    return str(path)


def log_of(job: Job) -> str:
    """What the demo server would say: every option took, the old variable is unknown."""
    words = dict(zip(job.argv, job.argv[1:], strict=False))
    mode = next((w.partition("=")[2] for w in job.argv if w.startswith("-cc.cudagraph_mode=")), "FULL")
    moe = words.get("--moe-backend", "AUTO_CHOICE")
    attention = words.get("--attention-backend", "FLASH_ATTN")
    lines = [
        f"Initializing a V1 LLM engine with config: kv_cache_dtype={words.get('--kv-cache-dtype', 'auto')}, "
        f"enable_prefix_caching={'--no-enable-prefix-caching' not in job.argv}, "
        f"compilation_config={{'cudagraph_mode': <CUDAGraphMode.{mode}: 0>}}",
        f"Using {attention} attention backend out of",
        f"Using '{moe}' NvFp4 MoE backend out of",
    ]
    lines += [
        f"Unknown vLLM environment variable detected: {n}" for n in job.variables if n.startswith("VLLM_")
    ]
    return "\n".join(lines) + "\n"


class FakeServers:
    """``run`` in place of :func:`crashlab.sweep.execute.run_job`; deterministic by arm and number."""

    def __init__(self) -> None:
        self.made: list[Job] = []

    def run(self, job: Job, stop: Stop | None = None, machine: str | None = None) -> ArmRun:
        self.made.append(job)
        dice = random.Random(f"{job.arm}/{job.number}")
        cured = job.arm.partition("=")[0] in GUILTY
        until = math.inf if cured else dice.expovariate(1 / EVERY)
        options = list(job.options)
        limit = float(options[options.index("--steps") + 1])
        outcome = FAULT if until < limit else CLEAN
        path = leave_run(job, outcome, max(1, math.ceil(min(until, limit))))
        return result_of(job, path, dict(os.environ), machine)
