"""A sweep from its plan to its table: crash-only, so that starting again is the same as going on."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from crashlab.errors import CrashlabError, MissingTool, ToolFailed, UnreadableInput, UsageError
from crashlab.rundir import private
from crashlab.rundir.journal import stamp
from crashlab.sweep import journal, leftovers
from crashlab.sweep.backend import Backend, Done
from crashlab.sweep.execute import kept_environment
from crashlab.sweep.facts import ArmRun, SweepResult
from crashlab.sweep.job import Job, job_of, unused, ways_of
from crashlab.sweep.lever import Way
from crashlab.sweep.machines import machines_of
from crashlab.sweep.outcome import INTERRUPTED, finished, result_of
from crashlab.sweep.plan import Plan, read_plan
from crashlab.sweep.probe import Server
from crashlab.sweep.schedule import Task, next_tasks

SCHEMA = "crashlab.sweep-folder/1"
PLAN, PARAMS, INFO, LOCK = "plan.toml", "params.json", "sweep.json", "lock"
_LOST_IN_A_ROW = 3

Say = Callable[[str], None]


class SweepFolder:
    """The folder of one sweep: its plan, its journal, its runs. One process at a time works in it."""

    def __init__(self, path: str, lock: str = LOCK) -> None:
        self.path = os.path.abspath(path)
        self._lock_name = lock
        self._lock: int | None = None

    @classmethod
    def open(cls, path: str, plan: Plan, cwd: str, *, lock: str = LOCK) -> SweepFolder:
        """Make the folder for a plan (mode 0700), or go on with the one that has this plan. ``lock``: the file whose
        holder may write (runs of an array each have their own).

        Raises UsageError if it belongs to another plan or somebody works in it, MissingTool if it cannot
        be written.
        """
        folder = cls(path, lock)
        try:
            private.make_new(folder.path)
            folder._take_lock()
        except OSError as error:
            raise MissingTool(
                f"{path} cannot be written: {error.strerror}.", hint="Give another folder with --out."
            ) from error
        info = folder.info
        if info is None:
            # A kill between the first files and the last leaves no sweep.json: begin anew.
            if any(not name.startswith((LOCK, PLAN, PARAMS, INFO)) for name in os.listdir(folder.path)):
                raise UsageError(
                    f"{path} is not empty and is no sweep's folder.", hint="Give a new folder with --out."
                )
            folder._begin(plan, cwd)
        elif info.get("plan_sha256") != plan.sha256:
            raise UsageError(
                f"{path} belongs to another plan (or the plan was changed since).",
                hint=f"Go on with its own plan: crashlab sweep {path}; or give a new folder with --out.",
            )
        return folder

    @property
    def info(self) -> Mapping[str, Any] | None:
        """``sweep.json``, None if there is none. Raises UnreadableInput if it may not be read."""
        try:
            with open(os.path.join(self.path, INFO), encoding="utf-8") as file:
                value = json.load(file)
        except PermissionError as error:
            raise _forbidden(self.path, INFO) from error
        except (OSError, ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None

    def close(self) -> None:
        """Let others in."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _take_lock(self) -> None:
        self._lock = os.open(
            os.path.join(self.path, self._lock_name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644
        )
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.close()
            raise UsageError(
                f"Another crashlab works in {self.path}.",
                hint="Wait for it, or give a new folder with --out.",
            ) from error

    def _begin(self, plan: Plan, cwd: str) -> None:
        info = {
            "schema": SCHEMA,
            "plan_sha256": plan.sha256,
            "name": plan.name,
            "cwd": cwd,
            "command": list(plan.command),
            "prepare": {lever: [list(words) for words in found] for lever, found in plan.prepare.items()},
            **stamp(),
        }
        _write(os.path.join(self.path, PLAN), plan.text)
        if plan.params_text is not None:
            _write(os.path.join(self.path, PARAMS), plan.params_text)
        _write(os.path.join(self.path, INFO), json.dumps(info, indent=1))


def plan_of(folder: str) -> Plan:
    """The plan that a sweep's folder was begun with. Raises UnreadableInput, UsageError."""
    info = SweepFolder(folder).info or {}

    def text(name: str) -> str:
        try:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError as error:
            raise UnreadableInput(
                f"{folder} has lost its {name}.", hint="Begin the sweep anew in another folder."
            ) from error
        except PermissionError as error:
            raise _forbidden(folder, name) from error
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UnreadableInput(
                f"{os.path.join(folder, name)} cannot be read: {reason}.",
                hint="Put the sweep's own plan back there, or begin the sweep anew in another folder.",
            ) from error

    command, prepare = info.get("command"), info.get("prepare")
    words = [str(word) for word in command] if isinstance(command, list) else []
    every = prepare.get("*") if isinstance(prepare, dict) else None
    plan = read_plan(
        text(PLAN),
        os.path.join(folder, PLAN),
        command=words,
        prepare=[[str(word) for word in row] for row in every] if isinstance(every, list) else (),
        read_file=lambda _: text(PARAMS),
    )
    return plan._replace(name=str(info.get("name") or plan.name), sha256=str(info.get("plan_sha256")))


def _forbidden(folder: str, name: str) -> UnreadableInput:
    return UnreadableInput(
        f"You may not read {os.path.join(folder, name)}: permission denied.",
        hint="Ask for the right to read it (chmod u+r), or go on as the user who began the sweep.",
    )


class Sweep:
    """One session of a sweep. ``server``: what the server said of itself, for the ways of setting levers."""

    def __init__(
        self,
        plan: Plan,
        folder: SweepFolder,
        backend: Backend,
        server: Server,
        say: Say,
    ) -> None:
        self.plan, self.folder = plan, folder
        self._backend, self._say = backend, say
        self._ways: Mapping[str, Way] = ways_of(plan, server)
        self._journal = journal.SweepJournal(folder.path)
        self._cwd = str((folder.info or {}).get("cwd") or os.getcwd())
        self._running: dict[int, Task] = {}
        self._lost = 0
        self.interrupts = 0

    def go(self) -> SweepResult:
        """Run to the plan's end, or until :meth:`interrupt`. Raises CrashlabError if it cannot go on."""
        try:
            self._recover()
            while True:
                if not self.interrupts:
                    self._start()
                if not self._running:
                    break
                for done in self._backend.wait(0.5):
                    self._settle(done)
        except BaseException:
            self._wind_down()
            raise
        finally:
            self._backend.close()
            self._journal.close()
        return self.result(finished=not self.interrupts)

    def interrupt(self) -> None:
        """Start nothing more and ask what runs to end."""
        self.interrupts += 1
        self._backend.stop()

    def _wind_down(self, seconds: float = 60.0) -> None:
        """The sweep cannot go on: end what still runs, and keep the results that come of it."""
        if not self._running:
            return
        self.interrupt()
        until = time.monotonic() + seconds
        while self._running and time.monotonic() < until:
            for done in self._backend.wait(0.5):
                with suppress(CrashlabError):
                    self._settle(done)

    def result(self, *, finished: bool | None = None) -> SweepResult:
        """What the journal says, without a judgement."""
        return result_from(self.folder, self.plan, finished=finished)

    def _start(self) -> None:
        if len(self._running) >= self._backend.slots:
            return
        record = journal.read(self.folder.path)
        tasks = next_tasks(self.plan, record.runs, list(self._running.values()), self._backend.slots)
        for at, task in enumerate(tasks):
            run = record.next_run + at
            token = f"{os.path.basename(self.folder.path)}-{run}-{secrets.token_hex(8)}"
            job = self._job(run, task, token)
            job = job._replace(rundir=unused(self.folder.path, job.rundir))
            self._journal.started(
                journal.Started(run, task.arm, task.number, token, job.rundir, task.exposure)
            )
            self._running[run] = task
            self._say(f"run {run}: {task.arm}" + (f" ({task.why})" if task.why else ""))
            self._backend.start(job)

    def _job(self, run: int, task: Task, token: str) -> Job:
        return job_of(
            self.plan,
            self._ways,
            task,
            run=run,
            folder=self.folder.path,
            cwd=self._cwd,
            token=token,
            replay=self._replay() or self.plan.load.get("replay"),
        )

    def _replay(self) -> str | None:
        """The first baseline run's request log, if the plan asks for it and it exists by now."""
        if not self.plan.replay_first:
            return None
        for result in journal.read(self.folder.path).runs:
            if result.arm == self.plan.arms[0].name and result.rundir is not None:
                path = os.path.join(self.folder.path, result.rundir, "requests.jsonl")
                if os.path.isfile(path):
                    return path
        return None

    def _settle(self, done: Done) -> None:
        run = done.job.run
        self._running.pop(run, None)
        if done.error is not None:
            self._journal.lost(run, str(done.error))
            raise done.error
        if done.result is None or done.result.note == INTERRUPTED:
            why = done.lost or INTERRUPTED
            self._journal.lost(run, why)
            self._lost += 1
            self._say(f"run {run}: {done.job.arm}: lost: {why}")
            if self._lost >= _LOST_IN_A_ROW + self._backend.slots and not self.interrupts:
                raise ToolFailed(
                    f"{self._lost} runs in a row left no result; the last: {why}",
                    hint=f"{self.folder.path}/side holds what they said. The same command goes on afterwards.",
                )
            return
        self._lost = 0
        self._journal.ended(run, done.result)
        self._say(f"run {run}: {done.job.arm}: {words_of(done.result)}")

    def _recover(self) -> None:
        """Settle what an earlier session left open: take over what still runs or is complete, end the rest."""
        problems: list[str] = []
        record = journal.read(self.folder.path, problems)
        for problem in problems:
            self._say(problem)
        for one in record.open:
            rundir = os.path.join(self.folder.path, one.rundir)
            job = self._job(one.run, Task(one.arm, one.number, one.exposure, ""), one.token)
            job = job._replace(rundir=one.rundir)
            self._wait_for(one)
            leftovers.end(one.token)
            if finished(rundir, job.mode):
                result = result_of(job, rundir, kept_environment(job), "local")
                if result.note == INTERRUPTED:
                    self._journal.lost(one.run, INTERRUPTED)
                    continue
                self._journal.ended(one.run, result)
                self._say(f"run {one.run}: {one.arm}: taken over: {words_of(result)}")
            else:
                self._journal.lost(one.run, "the sweep was ended while it ran, and it left no result")
                self._say(f"run {one.run}: {one.arm}: was cut off and is made again")

    def _wait_for(self, one: journal.Started) -> None:
        """A run that outlived its sweep is worth waiting for: its exposure is paid."""
        told = False
        while not self.interrupts and leftovers.supervisor_of(leftovers.marked(one.token)) is not None:
            if not told:
                self._say(f"run {one.run}: {one.arm}: still runs from before; waiting for it")
                told = True
            time.sleep(0.2)


def result_from(folder: SweepFolder, plan: Plan, *, finished: bool | None = None) -> SweepResult:
    """The sweep as its journal tells it."""
    info = folder.info
    if info is None:
        raise UnreadableInput(
            f"{folder.path} holds no sweep.", hint="Give the folder that 'crashlab sweep' named."
        )
    problems: list[str] = []
    runs = journal.read(folder.path, problems).runs
    created = info.get("t")
    return SweepResult(
        plan.name,
        plan.arms,
        tuple(runs),
        tuple(sorted({plan.seed + run.number for run in runs})),
        tuple(machines_of(folder.path, runs)),
        created if isinstance(created, str) else None,
        finished,
        problems=tuple(problems),
    )


def words_of(result: ArmRun) -> str:
    """A result in one line."""
    parts = [result.outcome]
    if result.exposure.steps is not None:
        parts.append(f"{result.exposure.steps:,} steps")
    if result.exposure.hours is not None:
        parts.append(f"{result.exposure.hours * 3600:,.0f} s under load")
    if result.note and result.outcome not in ("clean",):
        parts.append(result.note)
    return "; ".join(parts)


def _write(path: str, text: str) -> None:
    """Whole or not at all."""
    temporary = f"{path}.new{os.getpid()}"
    # The command may hold a key: for the owner's eyes only.
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(handle, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def is_sweep(path: str) -> bool:
    """Whether a folder is a sweep's."""
    with suppress(OSError, ValueError):
        return os.path.isfile(os.path.join(path, INFO))
    return False
