"""What to take from a program that hangs, and in which order: the later steps change or end it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from crashlab.capture import hoststacks
from crashlab.capture.tree import Proc
from crashlab.capture.trigger import Asked, ask, pipes
from crashlab.debugger.process import Limits, Runner, run
from crashlab.rundir import layout
from crashlab.rundir.writer import RunWriter

_STACK_BUDGET = 90.0
_MAX_PROCESSES = 64


class Means(NamedTuple):
    """What can be used, injected so that tests need neither GPU nor py-spy."""

    py_spy: str | None
    runner: Runner = run
    before: tuple[Callable[[], None], ...] = ()


def take_host_evidence(
    writer: RunWriter,
    attempt: int,
    number: int,
    processes: Iterable[Proc],
    means: Means,
    enough: Callable[[], bool],
) -> tuple[int, ...]:
    """``means.before`` (a server's metrics), nvidia-smi, then host stacks; files go to ``host/``.

    ``enough`` is asked between steps: a second interrupt must not wait for a slow tool.
    """
    for step in means.before:
        if not enough():
            step()
    prefix = f"{layout.HOST}/{attempt:03d}-{number:02d}"
    if not enough():
        _nvidia_smi(writer, attempt, f"{prefix}-nvidia-smi.txt", means.runner)
    deadline = time.monotonic() + _STACK_BUDGET
    done = []
    for process in list(processes)[:_MAX_PROCESSES]:
        # Past the time limit the kernel's view is still taken: it costs nothing.
        late = enough() or time.monotonic() > deadline
        stack = hoststacks.take(process.pid, py_spy=None if late else means.py_spy, runner=means.runner)
        name = f"{prefix}-stack-{process.pid}.txt"
        head = f"process {process.pid} {process.name} ({stack.how})\n"
        if stack.text and writer.write_file(name, head + stack.text):
            done.append(process.pid)
        writer.event(
            "host-stack",
            attempt=attempt,
            pid=process.pid,
            name=process.name,
            how=stack.how,
            file=name if stack.text else None,
            problem=stack.problem if not late else "not tried: the time for host stacks was used up",
        )
    return tuple(done)


def ask_for_dumps(
    writer: RunWriter, attempt: int, pattern: str | None, cwd: str, living: Iterable[int]
) -> tuple[Asked, ...]:
    """Ask each living process that owns a pipe. A pipe whose owner cannot be told is asked, too."""
    alive = set(living)
    out = []
    for pipe, pid in pipes(pattern, cwd):
        if pid is not None and pid not in alive:
            continue
        answer = ask(pipe, pid)
        writer.event("asked-for-dump", attempt=attempt, pid=pid, ok=answer.ok, what=answer.what)
        out.append(answer)
    if not out:
        writer.event("asked-for-dump", attempt=attempt, ok=False, what="no living process has a pipe")
    return tuple(out)


def _nvidia_smi(writer: RunWriter, attempt: int, name: str, runner: Runner) -> None:
    from crashlab.debugger.room import bare_room

    limits = Limits(seconds=10.0, output_bytes=1 << 20)
    with bare_room() as room:
        outcome = runner(("nvidia-smi",), room.env, room.root, limits, None)
    if outcome.missing:
        return
    writer.write_file(name, outcome.output)
    writer.event(
        "nvidia-smi", attempt=attempt, file=name, code=outcome.exit_code, timed_out=outcome.timed_out
    )
