"""Driver, GPU, and the library without which no dump is written."""

from __future__ import annotations

import os
from collections.abc import Iterator

from crashlab.capture.confounds import DEFEATS, find_confounds
from crashlab.capture.doctor.check import FAIL, UNKNOWN, WARN, Check, ok
from crashlab.capture.doctor.place import Place
from crashlab.capture.machine import gpu_models

_LIBRARY = "libcudadebugger.so.1"
_FOLDERS = (
    "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib", "lib64", "lib",
    "usr/local/nvidia/lib64", "usr/local/nvidia/lib", "usr/lib/wsl/lib", "usr/local/cuda/compat",
    "run/opengl-driver/lib", "opt/cuda/compat",
)  # fmt: skip


def driver(place: Place) -> Check:
    """Is there a driver?"""
    why = "the driver writes the dump"
    if place.driver is None:
        fix = "On a GPU machine: install the NVIDIA driver. In a container: start it with --gpus all."
        return Check("driver", FAIL, "no NVIDIA driver is visible", why, fix)
    major = int(place.driver.partition(".")[0]) if place.driver.partition(".")[0].isdigit() else 0
    if 0 < major < 525:
        fix = "Update the driver; 580 and later write the most complete dumps."
        return Check("driver", WARN, f"driver {place.driver}", "old drivers write poorer dumps", fix)
    return ok("driver", f"driver {place.driver}", why)


def gpus(place: Place) -> Check:
    """Is there a GPU?"""
    why = "without one nothing can fault"
    names = [str(gpu.get("name", "unnamed")) for gpu in place.gpus] or gpu_models(place.proc)
    if not names:
        fix = "Start the container with --gpus all, or check 'nvidia-smi -L' on the host."
        return Check("gpu", FAIL, "no GPU is visible", why, fix)
    if any(gpu.get("mig") for gpu in place.gpus):
        return Check(
            "gpu", WARN, f"{', '.join(names)}; MIG is on", "Xid events are not told to MIG instances", None
        )
    return ok("gpu", ", ".join(names), why)


def debugger_library(place: Place) -> Check:
    """Is libcudadebugger.so.1 there? Containers often have the driver without it."""
    why = "without it the driver writes no dump, and says nothing about it"
    for folder in _library_folders(place):
        path = os.path.join(folder, _LIBRARY)
        if os.path.exists(path):
            return ok("libcudadebugger", path, why)
    if _in_linker_cache(place):
        return ok("libcudadebugger", f"{_LIBRARY} is in the linker's cache", why)
    version = place.driver or "VERSION"
    fix = (
        f"Mount the host's libcudadebugger.so.{version} into the container as {_LIBRARY}, or use a current "
        "nvidia-container-toolkit with NVIDIA_DRIVER_CAPABILITIES=compute,utility."
    )
    return Check("libcudadebugger", FAIL, f"{_LIBRARY} was not found", why, fix)


def settings(place: Place) -> Iterator[Check]:
    """Variables that are set already and spoil the evidence."""
    found = False
    for one in find_confounds(place.environ):
        found = True
        status = FAIL if one.severity == DEFEATS else WARN
        yield Check("environment", status, f"{one.name}={one.value}", one.why, f"unset {one.name}")
    if not found:
        yield ok(
            "environment", "no setting spoils the evidence", "some settings hide a fault or switch dumps off"
        )


def others(place: Place) -> Check:
    """Is MPS or another debugger at work?"""
    why = "a debugger that is attached gets the exception instead of the dump; under MPS one client ends all"
    names = {
        "nvidia-cuda-mps-control",
        "nvidia-cuda-mps-server",
        "cuda-gdb",
        "cuda-gdbserver",
        "compute-sanitizer",
    }
    found = sorted(set(_process_names(place.proc)) & {name[:15] for name in names})
    if found:
        fix = "End it first; MPS: echo quit | nvidia-cuda-mps-control"
        return Check("others", WARN, f"running: {', '.join(found)}", why, fix)
    return ok("others", "neither MPS nor a debugger is running here", why)


def nvml_package(place: Place) -> Check:
    """Can GPU facts and Xid events be sampled?"""
    why = "it tells GPU facts, and Xid codes where the kernel log cannot be read"
    if place.nvml:
        return ok("nvml", "nvidia-ml-py works", why)
    return Check("nvml", WARN, "NVML is not available to Python", why, "pip install nvidia-ml-py")


def kernel_log(place: Place) -> Check:
    """Can Xid lines be read?"""
    why = "Xid 31 lines hold the faulting page, which no dump has"
    path = os.path.join(place.root, "dev/kmsg")
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    except OSError as error:
        fix = "Run as root, or in a container: --cap-add SYSLOG --device /dev/kmsg; else save 'dmesg' from the host."
        status = WARN if error.errno != 2 else UNKNOWN
        return Check("kernel log", status, f"/dev/kmsg: {error.strerror}", why, fix)
    return ok("kernel log", "/dev/kmsg can be read", why)


def _library_folders(place: Place) -> Iterator[str]:
    yield from (part for part in place.environ.get("LD_LIBRARY_PATH", "").split(":") if part)
    yield from (os.path.join(place.root, folder) for folder in _FOLDERS)


def _in_linker_cache(place: Place) -> bool:
    program = place.which("ldconfig") or "/sbin/ldconfig"
    outcome = place.ask((program, "-p"), 5.0)
    return _LIBRARY.encode() in outcome.output


def _process_names(proc: str) -> Iterator[str]:
    try:
        names = [name for name in os.listdir(proc) if name.isdecimal()]
    except OSError:
        return
    for name in names:
        try:
            with open(f"{proc}/{name}/comm", encoding="utf-8", errors="replace") as file:
                yield file.read(64).strip()
        except OSError:
            continue
