"""Where runs are made: here, one after the other or side by side. Ray is in :mod:`crashlab.sweep.raycluster`."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import NamedTuple, Protocol

from crashlab.errors import CrashlabError, ToolFailed
from crashlab.sweep.execute import Stop, run_job
from crashlab.sweep.facts import ArmRun
from crashlab.sweep.job import Job


class Done(NamedTuple):
    """A run that is over: its result, or why it has none (``lost``), or an error that ends the sweep."""

    job: Job
    result: ArmRun | None = None
    lost: str | None = None
    error: CrashlabError | None = None


class Backend(Protocol):
    """Takes orders and gives results."""

    slots: int

    def start(self, job: Job) -> None:
        """Begin a run; returns at once."""

    def wait(self, seconds: float) -> list[Done]:
        """What has ended since, after at most so many seconds."""

    def stop(self) -> None:
        """Ask every run to end; asked twice, at once."""

    def close(self) -> None:
        """Nothing runs any more."""


class Local:
    """Runs on this machine, each watched by a thread."""

    def __init__(self, slots: int = 1, machine: str = "local", run: Callable[..., ArmRun] = run_job) -> None:
        self.slots = slots
        self._machine, self._run = machine, run
        self._done: queue.Queue[Done] = queue.Queue()
        self._stops = 0

    def start(self, job: Job) -> None:
        """Begin a run."""
        threading.Thread(target=self._work, args=(job,), name=f"crashlab-run-{job.run}", daemon=True).start()

    def wait(self, seconds: float) -> list[Done]:
        """Results since the last call."""
        try:
            out = [self._done.get(timeout=seconds)]
        except queue.Empty:
            return []
        while not self._done.empty():
            out.append(self._done.get())
        return out

    def stop(self) -> None:
        """Pass an interrupt on to every run."""
        self._stops += 1

    def close(self) -> None:
        """Nothing is held."""

    def _work(self, job: Job) -> None:
        try:
            self._done.put(Done(job, self._run(job, Stop(lambda: self._stops), self._machine)))
        except ToolFailed as error:
            self._done.put(Done(job, lost=str(error)))
        except CrashlabError as error:
            self._done.put(Done(job, error=error))
        except Exception as error:  # noqa: BLE001 - a thread must not die in silence: it becomes the sweep's end
            self._done.put(Done(job, error=ToolFailed(f"{type(error).__name__}: {error}")))
