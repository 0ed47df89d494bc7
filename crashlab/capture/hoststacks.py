"""Where the host threads of a process stand: py-spy where it is, and what the kernel shows in any case."""

from __future__ import annotations

import os
import shutil
from typing import NamedTuple

from crashlab.debugger.process import Limits, Outcome, Runner, run

_LIMITS = Limits(seconds=20.0, output_bytes=4 << 20)
_MAX_THREADS = 256


class HostStack(NamedTuple):
    """What one look at a process gave. ``how``: py-spy --native, py-spy, kernel; ``problem`` why not more."""

    pid: int
    how: str
    text: str
    problem: str | None = None


def find_py_spy() -> str | None:
    """py-spy on PATH or beside the running interpreter."""
    import sys

    beside = os.path.join(os.path.dirname(sys.executable), "py-spy")
    return shutil.which("py-spy") or (beside if os.access(beside, os.X_OK) else None)


def take(pid: int, *, py_spy: str | None, runner: Runner = run) -> HostStack:
    """The stacks of one process. Never raises; never waits longer than two time limits of 20 s.

    py-spy reads another process's memory: that needs root, the same user with ptrace_scope 0, or
    SYS_PTRACE in a container. ``--native`` adds C frames and pauses the process for a moment.
    """
    kernel = kernel_view(pid)
    if not is_python(pid):
        return HostStack(pid, "kernel", kernel, None if kernel else "the process has gone")
    if py_spy is None:
        return HostStack(pid, "kernel", kernel, "py-spy is not installed")
    problem = None
    for how, options in (("py-spy --native", ("--native",)), ("py-spy", ("--nonblocking",))):
        outcome = _spy(py_spy, pid, options, runner)
        text = outcome.output.decode("utf-8", "replace")
        if outcome.exit_code == 0 and text.strip():
            return HostStack(pid, how, f"{text}\n{kernel}", problem)
        said = text.strip().splitlines()
        problem = outcome.error or (
            "timed out" if outcome.timed_out else said[0][:200] if said else "no output"
        )
    return HostStack(pid, "kernel", kernel, f"py-spy: {problem}")


def _spy(py_spy: str, pid: int, options: tuple[str, ...], runner: Runner) -> Outcome:
    from crashlab.debugger.room import bare_room

    with bare_room() as room:
        return runner((py_spy, "dump", "--pid", str(pid), *options), room.env, room.root, _LIMITS, None)


def is_python(pid: int, root: str = "/proc") -> bool:
    """Whether a process runs a Python interpreter, or has one loaded."""
    try:
        if os.path.basename(os.readlink(f"{root}/{pid}/exe")).startswith("python"):
            return True
        with open(f"{root}/{pid}/maps", "rb") as file:
            return b"libpython3" in file.read(4 << 20)
    except OSError:
        return False


def kernel_view(pid: int, root: str = "/proc") -> str:
    """One line a thread: name, state, the kernel function it waits in, and its kernel stack if readable.

    State D with an nvidia function in the stack is the driver's uninterruptible wait: such a process
    cannot be killed.
    """
    lines = []
    try:
        threads = sorted(os.listdir(f"{root}/{pid}/task"), key=int)
    except (OSError, ValueError):
        return ""
    for thread in threads[:_MAX_THREADS]:
        base = f"{root}/{pid}/task/{thread}"
        name, state = _read(f"{base}/comm"), _state(f"{base}/stat")
        where = _read(f"{base}/wchan")
        lines.append(
            f"thread {thread} {name or '?'}: {state or '?'} {where if where not in ('', '0') else 'running'}"
        )
        lines += [f"    {line}" for line in _read(f"{base}/stack").splitlines()[:16]]
    if len(threads) > _MAX_THREADS:
        lines.append(f"and {len(threads) - _MAX_THREADS} more threads")
    return "\n".join(lines) + "\n"


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(1 << 14).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _state(path: str) -> str:
    fields = _read(path).rpartition(")")[2].split()
    return fields[0] if fields else ""
