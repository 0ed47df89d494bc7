"""All checks in the order in which they matter."""

from __future__ import annotations

from crashlab.capture.doctor import gpu, host, known, tools, versions
from crashlab.capture.doctor.check import Check
from crashlab.capture.doctor.place import Place


def preflight(place: Place, *, torch: bool = True) -> list[Check]:
    """Every check. ``torch`` loads torch in a process of its own, which takes seconds."""
    return [
        gpu.driver(place),
        gpu.gpus(place),
        gpu.debugger_library(place),
        *gpu.settings(place),
        host.folder(place),
        host.space(place),
        tools.cuda_gdb(place),
        tools.nvdisasm(place),
        host.host_stacks(place),
        gpu.others(place),
        host.host_core(place),
        host.shared_memory(place),
        gpu.kernel_log(place),
        gpu.nvml_package(place),
        *known.entries(place),
        *versions.checks(place, versions.ask_torch(place) if torch else None),
    ]
