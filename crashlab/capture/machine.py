"""What is known about the machine before anything runs; everything that can be read without a GPU library."""

from __future__ import annotations

import os
import platform
import re
import resource
from typing import Any

_DRIVER = re.compile(
    r"(?:Kernel Module(?: for \S+)?|NVIDIA UNIX \S+(?: Kernel Module)?(?: for \S+)?)\s+(\d{3}\.[\d.]+)"
)


def machine_facts(proc: str = "/proc") -> dict[str, Any]:
    """Kernel, processors, memory, driver, GPUs, limits that decide about dumps. Absent is left out."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    facts: dict[str, Any] = {
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "processors": os.cpu_count(),
        "memory_bytes": memory_bytes(proc),
        "python": platform.python_version(),
        "driver": driver_version(proc),
        "gpus": gpu_models(proc) or None,
        "core_pattern": read_text(f"{proc}/sys/kernel/core_pattern"),
        "core_limit": [soft, hard],
        "ptrace_scope": read_text(f"{proc}/sys/kernel/yama/ptrace_scope"),
        "shm_bytes": free_bytes("/dev/shm", total=True),
        "container": in_container(),
        "boot_time": boot_time(proc),
        "kernel_pids": kernel_pids(proc),
        "pid": os.getpid(),
    }
    return {key: value for key, value in facts.items() if value is not None}


def driver_version(proc: str = "/proc") -> str | None:
    """The kernel module's version, as 580.159.04."""
    text = read_text(f"{proc}/driver/nvidia/version") or ""
    found = _DRIVER.search(text)
    return found.group(1) if found else None


def gpu_models(proc: str = "/proc") -> list[str]:
    """Model names from the kernel module; empty where it does not tell (WSL, some containers)."""
    base, out = f"{proc}/driver/nvidia/gpus", []
    try:
        names = sorted(os.listdir(base))
    except OSError:
        return []
    for name in names:
        for line in (read_text(f"{base}/{name}/information") or "").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "Model":
                out.append(value.strip())
    return out


def memory_bytes(proc: str = "/proc") -> int | None:
    """Main memory."""
    found = re.search(r"MemTotal:\s+(\d+) kB", read_text(f"{proc}/meminfo") or "")
    return int(found.group(1)) * 1024 if found else None


def free_bytes(path: str, *, total: bool = False) -> int | None:
    """Free (or all) bytes of the file system that holds ``path``."""
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    return (found.f_blocks if total else found.f_bavail) * found.f_frsize


def boot_time(proc: str = "/proc") -> int | None:
    """Seconds since 1970 at which this kernel started, for the uptime stamps of its log."""
    found = re.search(r"^btime (\d{1,12})$", read_text(f"{proc}/stat", 1 << 20) or "", re.MULTILINE)
    return int(found.group(1)) if found else None


_FIRST_PID_NAMESPACE = 0xEFFFFFFC
"""Inode of the initial PID namespace: PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h."""


def kernel_pids(proc: str = "/proc") -> bool | None:
    """Whether process ids here are those of the kernel log; None where that cannot be read."""
    try:
        return os.stat(f"{proc}/self/ns/pid").st_ino == _FIRST_PID_NAMESPACE
    except OSError:
        return None


def in_container() -> bool | None:
    """True where the usual marks of a container are; None where there are none (which proves nothing)."""
    marks = os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv")
    return True if marks or "KUBERNETES_SERVICE_HOST" in os.environ else None


def read_text(path: str, most: int = 1 << 16) -> str | None:
    """A small text file without surrounding blanks; None if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(most).strip()
    except OSError:
        return None
