"""The core-dump environment of a scene (NVIDIA's cuda-gdb manual, "GPU core dump support")."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

LIGHT = (
    "skip_nonrelocated_elf_images",
    "skip_global_memory",
    "skip_shared_memory",
    "skip_local_memory",
    "skip_constbank_memory",
)
SKIPPED = {
    "light": LIGHT,
    "shared": tuple(flag for flag in LIGHT if "shared" not in flag and "local" not in flag),
    "full": LIGHT[:1],
}


def dump_environment(base: Mapping[str, str], folder: Path, detail: str) -> dict[str, str]:
    """`base` with dumps switched on: dumps to FOLDER/PID.nvcudmp, trigger pipes at FOLDER/PID.pipe."""
    environment = {name: value for name, value in base.items() if not name.startswith("CUDA_COREDUMP")}
    for confound in ("CUDA_LAUNCH_BLOCKING", "CUDA_ENABLE_LIGHTWEIGHT_COREDUMP", "CUDA_MODULE_LOADING"):
        environment.pop(confound, None)
    environment.update(
        CUDA_ENABLE_COREDUMP_ON_EXCEPTION="1",
        CUDA_ENABLE_USER_TRIGGERED_COREDUMP="1",
        CUDA_COREDUMP_SHOW_PROGRESS="1",
        CUDA_COREDUMP_FILE=str(folder / "%p.nvcudmp"),
        CUDA_COREDUMP_PIPE=str(folder / "%p.pipe"),
        CUDA_COREDUMP_GENERATION_FLAGS=",".join(SKIPPED[detail]),
        PYTHONUNBUFFERED="1",
    )
    return environment
