"""Facts about the machine: GPUs, driver, tools, and what the kernel log says while a scene runs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple


class Machine(NamedTuple):
    gpu: str | None
    gpus: int
    compute_capability: int  # 90 for 9.0; 0 if there is no GPU
    driver: str | None
    tools: dict[str, str]  # tool: the last line of its version text
    smi: str  # what nvidia-smi prints


def output_of(argv: list[str], seconds: float = 30) -> str:
    """Standard output and error of a command, "" if it cannot be run or does not end in time."""
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace")


def find_tool(name: str) -> str | None:
    """On PATH, or in a CUDA toolkit at its usual place."""
    toolkit = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin" / name
    return shutil.which(name) or (str(toolkit) if toolkit.is_file() else None)


def inspect_machine() -> Machine:
    rows = output_of(["nvidia-smi", "--query-gpu=name,compute_cap,driver_version", "--format=csv,noheader"])
    gpus = [row.split(", ") for row in rows.splitlines() if row.count(", ") == 2]
    tools = {}
    for name in ("nvcc", "cuda-gdb", "xz"):
        path = find_tool(name)
        if path:
            lines = [line for line in output_of([path, "--version"]).splitlines() if line.strip()]
            wanted = [line for line in lines if "release" in line or "GNU gdb" in line or "xz" in line]
            tools[name] = (wanted or lines or ["?"])[0]
    if not gpus:
        return Machine(None, 0, 0, None, tools, "")
    name, capability, driver = gpus[0]
    return Machine(
        name, len(gpus), int(capability.replace(".", "")), driver, tools, output_of(["nvidia-smi"])
    )


class KernelLog:
    """The NVIDIA driver's lines (NVRM, Xid) of the kernel log since the last look (none if it is closed)."""

    def __init__(self) -> None:
        self._file = -1
        try:
            self._file = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self._file, 0, os.SEEK_END)
        except OSError:
            pass

    def new_lines(self) -> list[str]:
        lines: list[str] = []
        for _ in range(10_000):
            if self._file < 0:
                break
            try:
                record = os.read(self._file, 8192).decode(errors="replace")
            except BlockingIOError:
                break
            except OSError:  # EPIPE: records were overwritten before they were read; go on with the next
                continue
            text = record.partition(";")[2].partition("\n")[0]
            if "NVRM" in text or "Xid" in text:
                lines.append(text)
        return lines
