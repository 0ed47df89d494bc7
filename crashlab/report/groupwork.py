"""Many dumps read at the same time: in several processes here, or as tasks of a Ray cluster.

A process of its own also bounds what a hostile dump can break: if one dies, only its dump is unreadable.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

from crashlab import facts
from crashlab.errors import UnreadableDump, UnreadableInput
from crashlab.inputfile import open_regular
from crashlab.report.build import analyze_dump, unreadable
from crashlab.report.options import AnalyzeOptions

LOCAL, RAY = "local", "ray"
_WORTH_IT = 16
"""Below so many dumps starting processes costs more than it saves."""
_CHUNK = 4
_SHIPPED = 512 << 20
"""Larger dumps are read where they lie instead of being sent to a node."""


def processors() -> int:
    """How many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except OSError:
        return os.cpu_count() or 1


def read_here(
    paths: Sequence[str], options: AnalyzeOptions, jobs: int | None = None
) -> Iterator[facts.Report]:
    """A report on each dump, in their order. ``jobs`` None: as many processes as there are processors."""
    jobs = processors() if jobs is None else jobs
    if jobs < 2 or len(paths) < _WORTH_IT:
        for path in paths:
            yield analyze_dump(path, options)
        return
    chunks = [list(paths[at : at + _CHUNK]) for at in range(0, len(paths), _CHUNK)]
    done = 0
    while done < len(chunks):
        try:
            with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
                for reports in _in_order(pool, chunks[done:], options, jobs):
                    yield from reports
                    done += 1
        except BrokenProcessPool:
            # One of the next chunks kills its process; which one shows when they are read one by one.
            for path in (path for chunk in chunks[done : done + 2 * jobs] for path in chunk):
                yield _alone(path, options)
            done += 2 * jobs


def _in_order(
    pool: ProcessPoolExecutor, chunks: Sequence[list[str]], options: AnalyzeOptions, jobs: int
) -> Iterator[list[facts.Report]]:
    """At most twice as many chunks as processes are under way: a thousand reports need not wait in memory."""
    waiting: list[Future[list[facts.Report]]] = []
    for chunk in chunks:
        with _interrupts_later():
            waiting.append(pool.submit(_read, chunk, options))
        if len(waiting) >= 2 * jobs:
            yield waiting.pop(0).result()
    while waiting:
        yield waiting.pop(0).result()


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Ctrl-C is for us alone: a process that is started meanwhile inherits that it is blocked, and would
    else print a traceback of its own while it is still loading. Ours comes when the block ends."""
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def _read(paths: Sequence[str], options: AnalyzeOptions) -> list[facts.Report]:
    return [analyze_dump(path, options) for path in paths]


def _alone(path: str, options: AnalyzeOptions) -> facts.Report:
    try:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            with _interrupts_later():
                future = pool.submit(_read, [path], options)
            return future.result()[0]
    except BrokenProcessPool:
        return _fatal(path, options)


def _fatal(path: str, options: AnalyzeOptions) -> facts.Report:
    error = UnreadableDump(
        f"{os.path.basename(path)}: reading it ended the process.",
        reason="malformed",
        hint="Please report it, with the dump if you may.",
    )
    return unreadable(path, error, options)


def read_on_ray(
    paths: Sequence[str], options: AnalyzeOptions, address: str = "auto"
) -> Iterator[facts.Report]:
    """The same on a cluster, in the order of ``paths``. A task whose node dies is made again by Ray.

    Raises MissingTool without ray or without a cluster.
    """
    from crashlab.sweep.raycluster import connect

    ray = connect(address)
    task = ray.remote(num_cpus=1, max_retries=3)(_on_node)
    most = 2 * max(2, int(ray.cluster_resources().get("CPU", 1)))
    waiting: list[tuple[str, Any]] = []
    for path in paths:
        waiting.append((path, _sent(task, path, options)))
        if len(waiting) >= most:
            yield _answer(ray, *waiting.pop(0), options)
    while waiting:
        yield _answer(ray, *waiting.pop(0), options)


def _sent(task: Any, path: str, options: AnalyzeOptions) -> Any:
    """A task's reference; None for a dump that is not sent."""
    try:
        with open_regular(path, "dump") as file:
            content = file.read(_SHIPPED + 1)
    except (UnreadableInput, OSError):
        return None
    return None if len(content) > _SHIPPED else task.remote(os.path.basename(path), content, options)


def _answer(ray: Any, path: str, reference: Any, options: AnalyzeOptions) -> facts.Report:
    if reference is None:
        return analyze_dump(path, options)
    try:
        report = ray.get(reference)
    except ray.exceptions.WorkerCrashedError:
        return _fatal(path, options)
    except ray.exceptions.RayError:
        return analyze_dump(path, options)  # the cluster lost it several times; it is still here
    assert isinstance(report, facts.Report)
    return report


def _on_node(name: str, content: bytes, options: AnalyzeOptions) -> facts.Report:
    import tempfile

    with tempfile.TemporaryDirectory(prefix="crashlab-") as folder:
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(content)
        return analyze_dump(path, options)
