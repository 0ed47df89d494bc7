"""One invocation of a sweep: the runs that are still to be made, then the result."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from crashlab.cli.sweepview import code_of, say, show
from crashlab.cli.tofile import check_target

if TYPE_CHECKING:
    from crashlab.sweep.backend import Backend
    from crashlab.sweep.facts import SweepResult
    from crashlab.sweep.plan import Plan
    from crashlab.sweep.probe import Server

_INTERRUPTED = 130


def run_one(plan: Plan, server: Server, path: str, options: dict[str, Any]) -> int:
    """One run of an array, by its number; the exit code."""
    from crashlab.sweep.arraytask import run_task

    def tell(text: str) -> None:
        say(text, quiet=options["quiet"])

    done = run_task(plan, path, options["task"], server, os.getcwd(), tell)
    return 0 if done is not None else _INTERRUPTED


def run_all(plan: Plan, server: Server, path: str, options: dict[str, Any]) -> int:
    """Every run that is still to be made, then the result; the exit code."""
    from crashlab.sweep.job import check_parallel
    from crashlab.sweep.runner import Sweep, SweepFolder

    check_target(options["output"])
    backend = _backend(plan, options)
    check_parallel(plan, backend.slots)
    folder = SweepFolder.open(path, plan, os.getcwd())
    try:
        run = Sweep(plan, folder, backend, server, lambda text: say(text, quiet=options["quiet"]))
        say(f"the sweep's folder is {folder.path}", quiet=options["quiet"])
        result = _go(run)
    finally:
        folder.close()
    show(result, plan, folder.path, options)
    if run.interrupts:
        say(f"interrupted; 'crashlab sweep {path}' goes on", quiet=options["quiet"])
        return _INTERRUPTED
    return code_of(plan, result)


def _go(run: Any) -> SweepResult:
    """Ctrl-C once: no more runs, and what runs takes its evidence; twice: it ends now."""
    import signal

    old = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        old[number] = signal.signal(number, lambda *_: run.interrupt())
    try:
        result: SweepResult = run.go()
        return result
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _backend(plan: Plan, options: dict[str, Any]) -> Backend:
    if options["place"] == "ray":
        from crashlab.sweep.raycluster import RayCluster

        return RayCluster(plan.remote, options["ray_address"])
    from crashlab.sweep.backend import Local

    return Local(plan.remote.parallel or 1)
