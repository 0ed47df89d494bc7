"""What the run directories say about the machines that made them."""

from __future__ import annotations

import os
from collections.abc import Iterable

from crashlab.facts import EnvFact
from crashlab.rundir import layout
from crashlab.sweep.facts import ArmRun, Machine
from crashlab.sweep.outcome import load_json

_KEYS = (
    "gpu",
    "driver",
    "cuda_driver",
    "vllm",
    "torch",
    "torch_cuda",
    "cudnn",
    "cublas",
    "flashinfer",
    "nccl",
)


def machines_of(folder: str, runs: Iterable[ArmRun]) -> list[Machine]:
    """One a machine, from the first of its runs that tells anything."""
    found: dict[str, dict[str, EnvFact]] = {}
    for run in runs:
        name = run.machine or "local"
        facts = found.setdefault(name, {})
        if facts or run.rundir is None:
            continue
        report = load_json(os.path.join(folder, run.rundir, layout.REPORT)) or {}
        environment = report.get("environment")
        for key, fact in (environment if isinstance(environment, dict) else {}).items():
            value, source = (
                (fact.get("value"), fact.get("source")) if isinstance(fact, dict) else (None, None)
            )
            if key in _KEYS and isinstance(value, str) and isinstance(source, str):
                facts[key] = EnvFact(value, source)
    return [Machine(name, facts) for name, facts in found.items()]
