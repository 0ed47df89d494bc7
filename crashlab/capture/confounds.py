"""Settings that weaken the evidence or hide the fault: reported, never changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Confound(NamedTuple):
    """A setting and what it does to the evidence. ``severity``: defeats, distorts."""

    name: str
    value: str
    severity: str
    why: str


DEFEATS, DISTORTS = "defeats", "distorts"
_OFF = ("", "0")

# (name, severity, why); a value of 0 or nothing means off
_TABLE: tuple[tuple[str, str, str], ...] = (
    (
        "CUDA_LAUNCH_BLOCKING",
        DISTORTS,
        "each launch waits: races and overlaps that cause the fault may not happen",
    ),
    ("TORCH_USE_CUDA_DSA", DISTORTS, "device-side assertions change the kernels' code and timing"),
    ("CUDA_DEVICE_WAITS_ON_EXCEPTION", DEFEATS, "the GPU waits for a debugger instead of writing a dump"),
    (
        "CUDA_ENABLE_LIGHTWEIGHT_COREDUMP",
        DISTORTS,
        "removed in CUDA 13.0; driver 580 then writes full dumps: use CUDA_COREDUMP_GENERATION_FLAGS",
    ),
    ("CUDA_INJECTION64_PATH", DISTORTS, "a tool (sanitizer, profiler) is injected and changes timing"),
    (
        "PYTORCH_NO_CUDA_MEMORY_CACHING",
        DISTORTS,
        "every tensor is its own allocation: overruns fault elsewhere",
    ),
    ("NCCL_LAUNCH_MODE", DISTORTS, "changes how collective kernels are launched"),
    ("CUDA_MPS_PIPE_DIRECTORY", DISTORTS, "under MPS one client's fault ends the others too"),
)


def find_confounds(environment: Mapping[str, str]) -> tuple[Confound, ...]:
    """Those of an effective environment (the program's own, with crashlab's settings applied)."""
    out = [
        Confound(name, environment[name], severity, why)
        for name, severity, why in _TABLE
        if environment.get(name) is not None and environment[name] not in _OFF
    ]
    switch = environment.get("CUDA_ENABLE_COREDUMP_ON_EXCEPTION")
    if switch is not None and switch in _OFF:
        why = "no dump is written when a kernel faults"
        out.append(Confound("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", switch, DEFEATS, why))
    flags = environment.get("CUDA_COREDUMP_GENERATION_FLAGS", "")
    if "skip_abort" in flags:
        why = "skip_abort lets the process go on after its fault, which can swallow it"
        out.append(Confound("CUDA_COREDUMP_GENERATION_FLAGS", flags, DEFEATS, why))
    if environment.get("CUDA_COREDUMP_SHOW_PROGRESS") in _OFF:
        why = "the driver prints nothing: a dump that is cut short leaves no trace of the fault"
        out.append(
            Confound("CUDA_COREDUMP_SHOW_PROGRESS", environment["CUDA_COREDUMP_SHOW_PROGRESS"], DISTORTS, why)
        )
    return tuple(out)
