"""The three CUDA versions (driver, torch, toolkit), and cuDNN as loaded against installed."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

from crashlab.capture.doctor.check import FAIL, UNKNOWN, WARN, Check, ok
from crashlab.capture.doctor.place import Place, dotted
from crashlab.capture.libraries import duplicates, identify

_RELEASE = re.compile(r"release (\d+\.\d+)")
_FIRST_TOOLKIT = (((12, 0), (12, 8)), ((10, 3), (12, 9)), ((10, 0), (12, 8)), ((9, 0), (11, 8)))
_FLASHINFER_SM12 = (12, 9)
_ASK_TORCH = """
import json, torch
torch.zeros(1)
out = {"torch": torch.__version__, "cuda": torch.version.cuda, "file": torch.__file__}
try: out["archs"] = torch.cuda.get_arch_list()
except Exception: pass
try: out["cudnn"] = torch.backends.cudnn.version()
except Exception: pass
out["maps"] = sorted({l.split(None, 5)[5].strip() for l in open("/proc/self/maps") if ".so" in l and "/" in l})
print("ANSWER " + json.dumps(out))
"""


def ask_torch(place: Place, python: str | None = None) -> dict[str, Any] | None:
    """What a torch in this environment says after loading; None without one. Takes seconds."""
    outcome = place.ask((python or sys.executable, "-c", _ASK_TORCH), 60.0, place.environ)
    text = outcome.output.decode("utf-8", "replace")
    for line in text.splitlines():
        if line.startswith("ANSWER "):
            try:
                answer = json.loads(line.removeprefix("ANSWER "))
            except ValueError:
                return None
            return answer if isinstance(answer, dict) else None
    return None


def toolkit(place: Place) -> tuple[str, str] | None:
    """(version, path of nvcc) of the toolkit that JIT compilers would find; None without one."""
    home = place.environ.get("CUDA_HOME") or place.environ.get("CUDA_PATH")
    default = os.path.join(place.root, "usr/local/cuda")
    for path in (
        os.path.join(home, "bin/nvcc") if home else None,
        place.which("nvcc"),
        os.path.join(default, "bin/nvcc"),
    ):
        if path and os.path.isfile(path):
            outcome = place.ask((path, "--version"), 10.0)
            found = _RELEASE.search(outcome.output.decode("utf-8", "replace"))
            if found:
                return found.group(1), path
    return None


def checks(place: Place, torch: dict[str, Any] | None) -> Iterator[Check]:
    """All version checks."""
    yield _driver_and_torch(place, torch)
    yield _toolkit(place, toolkit(place))
    if torch is not None:
        yield _architectures(place, torch)
        yield _cudnn(torch)


def _driver_and_torch(place: Place, torch: dict[str, Any] | None) -> Check:
    why = "a torch built for a newer CUDA than the driver's runs in compatibility mode or not at all"
    driver = next((str(gpu["cuda_driver"]) for gpu in place.gpus if gpu.get("cuda_driver")), None)
    built = torch.get("cuda") if torch is not None else None
    if torch is None:
        return Check("cuda versions", UNKNOWN, f"driver CUDA {driver or 'unknown'}; no torch here", why)
    found = f"driver CUDA {driver or 'unknown'}, torch {torch.get('torch')} built for CUDA {built}"
    if driver and built and dotted(str(built))[:1] > dotted(driver)[:1]:
        return Check(
            "cuda versions", FAIL, found, why, "Update the driver, or install a torch for its CUDA version."
        )
    return ok("cuda versions", found, why)


def _toolkit(place: Place, found: tuple[str, str] | None) -> Check:
    why = (
        "FlashInfer, Triton and others compile kernels with it; one too old for the GPU miscompiles or fails"
    )
    if found is None:
        return Check(
            "toolkit", UNKNOWN, "no nvcc was found", why, "Set CUDA_HOME if kernels are compiled here."
        )
    text = f"nvcc {found[0]} ({found[1]})"
    if place.sm is None:
        return ok("toolkit", text, why)
    needed = next((toolkit for sm, toolkit in _FIRST_TOOLKIT if place.sm >= sm), None)
    name = f"sm_{place.sm[0]}{place.sm[1]}"
    if needed is not None and dotted(found[0]) < needed:
        fix = f"Install CUDA {needed[0]}.{needed[1]} or newer and point CUDA_HOME at it."
        return Check("toolkit", FAIL, f"{text} does not know {name}", why, fix)
    if place.sm[0] == 12 and dotted(found[0]) < _FLASHINFER_SM12:
        fix = "Install CUDA 12.9 or newer and point CUDA_HOME at it."
        return Check("toolkit", WARN, f"{text}: FlashInfer wants 12.9 or newer on {name}", why, fix)
    return ok("toolkit", text, why)


def _architectures(place: Place, torch: dict[str, Any]) -> Check:
    why = "a GPU that torch was not built for runs kernels compiled on the fly, or none"
    archs = [str(arch) for arch in torch.get("archs") or ()]
    if place.sm is None or not archs:
        return Check("torch architectures", UNKNOWN, ", ".join(archs) or "torch does not tell", why)
    # Code for sm_80 runs on 8.6: the same major version and not a newer minor one.
    fitting = [arch for arch in archs if _fits(arch, place.sm)]
    name = f"sm_{place.sm[0]}{place.sm[1]}"
    if fitting:
        return ok("torch architectures", f"{name} is covered by {', '.join(fitting)}", why)
    fix = f"Install a torch build whose list has {name}."
    return Check("torch architectures", FAIL, f"{name} is not in {', '.join(archs)}", why, fix)


def _fits(arch: str, sm: tuple[int, int]) -> bool:
    found = re.fullmatch(r"(?:sm|compute)_(\d+)(\d)[af]?", arch)
    if found is None:
        return False
    major, minor = int(found[1]), int(found[2])
    if arch.startswith("compute"):
        return (major, minor) <= sm
    return major == sm[0] and minor <= sm[1]


def _cudnn(torch: dict[str, Any]) -> Check:
    why = "two copies, or another one than installed, are a classic cause of faults in convolutions and attention"
    paths = [path for path in torch.get("maps") or () if isinstance(path, str)]
    number = torch.get("cudnn")
    if not isinstance(number, int):
        return Check("cudnn", UNKNOWN, "torch does not tell", why)
    scale = 10_000 if number >= 90_000 else 1000
    loaded = f"{number // scale}.{number % scale // 100}.{number % 100}"
    found = [one for one in identify(paths) if one.key == "cudnn"]
    twice = [what for what in duplicates(identify(paths)) if what.startswith("cudnn")]
    if twice:
        return Check("cudnn", WARN, twice[0], why, "Leave one of them on LD_LIBRARY_PATH.")
    installed = next((one.version for one in found if one.version), None)
    if installed is not None and not installed.startswith(loaded):
        fix = "Check LD_LIBRARY_PATH and LD_PRELOAD: another cuDNN than the installed one is loaded."
        return Check("cudnn", WARN, f"loaded {loaded}, installed {installed}", why, fix)
    return ok("cudnn", f"{loaded} loaded" + (f" from {found[0].path}" if found else ""), why)
