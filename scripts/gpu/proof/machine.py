"""Which GPU, driver and versions an acceptance run was made with: what its table says on top."""

from __future__ import annotations

import platform
import re
from importlib import metadata
from typing import Any

from recorder.machine import Machine, inspect_machine, output_of

from crashlab import __version__

PACKAGES = ("torch", "triton", "vllm", "py-spy")


def describe(machine: Machine | None = None) -> dict[str, Any]:
    """GPU, how many, driver, tools with their versions, Python and packages; None for what is not there."""
    found = machine or inspect_machine()
    smi = re.search(r"CUDA Version: ([\d.]+)", found.smi or output_of(["nvidia-smi"]))
    return {
        "gpu": found.gpu,
        "gpus": found.gpus,
        "driver": found.driver,
        "cuda": smi[1] if smi else None,
        "tools": found.tools,
        "python": platform.python_version(),
        "crashlab": __version__,
        "packages": {name: version for name in PACKAGES if (version := _version(name)) is not None},
    }


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
