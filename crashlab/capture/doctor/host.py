"""Space, permissions and limits of the host."""

from __future__ import annotations

import os
import resource
import tempfile

from crashlab.capture import hoststacks
from crashlab.capture.doctor.check import FAIL, UNKNOWN, WARN, Check, ok
from crashlab.capture.doctor.place import Place
from crashlab.capture.machine import free_bytes, read_text

_GIB = 1 << 30
_LIGHT_NEED = 2 * _GIB
_SHM_NEED = _GIB


def folder(place: Place) -> Check:
    """Can a run directory be written?"""
    why = "dumps, output and events go there"
    parent = place.folder
    while parent and not os.path.isdir(parent):
        parent = os.path.dirname(parent)
    try:
        with tempfile.TemporaryFile(dir=parent or "/"):
            pass
    except OSError as error:
        fix = "Name a writable folder with --out DIR; in a container, mount a volume."
        return Check("folder", FAIL, f"{place.folder}: {error.strerror}", why, fix)
    return ok("folder", f"{place.folder} can be written", why)


def space(place: Place) -> Check:
    """Is there room for dumps?"""
    why = "a dump that does not fit is cut short and the process ends all the same"
    parent = place.folder
    while parent and not os.path.isdir(parent):
        parent = os.path.dirname(parent)
    free = free_bytes(parent or "/")
    if free is None:
        return Check("space", UNKNOWN, "free space cannot be told", why)
    memory = sum(int(gpu.get("memory_bytes", 0)) for gpu in place.gpus)
    found = f"{free / _GIB:.1f} GiB free"
    if free < _LIGHT_NEED:
        return Check("space", WARN, found, why, "Free some space, or name another folder with --out.")
    if memory and free < memory:
        note = f"{found}: enough for light dumps, not for --dump full ({memory / _GIB:.0f} GiB of GPU memory)"
        return ok("space", note, why)
    return ok("space", found, why)


def host_stacks(place: Place) -> Check:
    """Will host stacks be readable?"""
    why = "on a hang it shows where the program waits"
    program = place.which("py-spy") or hoststacks.find_py_spy()
    scope = read_text(os.path.join(place.proc, "sys/kernel/yama/ptrace_scope"))
    if program is None:
        return Check("py-spy", WARN, "py-spy was not found", why, "pip install py-spy")
    # A parent may look at its descendants under scope 1; crashlab runs py-spy as its child, which may not.
    if os.getuid() != 0 and scope not in (None, "0"):
        fix = "Run as root, set kernel.yama.ptrace_scope=0, or in a container add --cap-add SYS_PTRACE."
        return Check("py-spy", WARN, f"{program}, but ptrace_scope is {scope}", why, fix)
    return ok("py-spy", f"{program}" + (f", ptrace_scope {scope}" if scope else ""), why)


def host_core(place: Place) -> Check:
    """Where would a host core dump go?"""
    why = "after a GPU dump the driver aborts the process; a host core of a server can fill a disk"
    pattern = read_text(os.path.join(place.proc, "sys/kernel/core_pattern"))
    soft, _ = resource.getrlimit(resource.RLIMIT_CORE)
    limit = "unlimited" if soft == resource.RLIM_INFINITY else f"{soft} bytes"
    found = f"core_pattern {pattern or 'unknown'}, RLIMIT_CORE {limit}"
    if soft != 0 and pattern is not None and not pattern.startswith("|"):
        fix = "'ulimit -c 0' unless you want host cores; they are not needed here."
        return Check("host core", WARN, found, why, fix)
    return ok("host core", found, why)


def shared_memory(place: Place) -> Check:
    """Is /dev/shm large enough for NCCL and multi-process servers?"""
    why = "NCCL and server workers fail or hang when it is full: Docker's default is 64 MiB"
    total = free_bytes(place.shm, total=True)
    if total is None:
        return Check(
            "shared memory", WARN, f"{place.shm} is not there", why, "docker run --ipc=host or --shm-size=16g"
        )
    if total < _SHM_NEED:
        fix = "docker run --ipc=host or --shm-size=16g; Kubernetes: an emptyDir with medium Memory"
        return Check("shared memory", WARN, f"{place.shm} has {total >> 20} MiB", why, fix)
    return ok("shared memory", f"{place.shm} has {total / _GIB:.1f} GiB", why)
