"""One run of an array of jobs (Slurm): its own journal, so that no two nodes write one file."""

from __future__ import annotations

import os
import secrets

from crashlab.errors import UsageError
from crashlab.postmortem.words import counted
from crashlab.sweep import journal, leftovers
from crashlab.sweep.execute import run_job
from crashlab.sweep.facts import ArmRun
from crashlab.sweep.job import job_of, unused, ways_of
from crashlab.sweep.outcome import INTERRUPTED
from crashlab.sweep.plan import Plan
from crashlab.sweep.probe import Server
from crashlab.sweep.runner import LOCK, Say, SweepFolder, words_of
from crashlab.sweep.slurm import tasks


def run_task(plan: Plan, path: str, number: int, server: Server, cwd: str, say: Say) -> ArmRun | None:
    """Make run ``number`` (from 1) unless it has a result; None if somebody ended it.

    Raises UsageError for a number beyond the array, ToolFailed when the run left no result.
    """
    planned = tasks(plan)
    if number > len(planned):
        raise UsageError(
            f"The array has {counted(len(planned), 'run')}, none is number {number}.",
            hint="Print the script again with --slurm: the plan was changed.",
        )
    task = planned[number - 1]
    folder = SweepFolder.open(path, plan, cwd, lock=f"{LOCK}-{number:04d}")
    log = None
    try:
        record = journal.read(folder.path)
        if number in record.ended:
            say(f"run {number}: {task.arm}: has its result already")
            return record.ended[number]
        earlier = record.started.get(number)
        if earlier is not None:
            leftovers.end(earlier.token)
        log = journal.SweepJournal(folder.path, f"journal-{number:04d}.jsonl")
        token = f"{os.path.basename(folder.path)}-{number}-{secrets.token_hex(8)}"
        job = job_of(
            plan,
            ways_of(plan, server),
            task,
            run=number,
            folder=folder.path,
            cwd=cwd,
            token=token,
            replay=plan.load.get("replay"),
        )
        job = job._replace(rundir=unused(folder.path, job.rundir))
        log.started(journal.Started(number, task.arm, task.number, token, job.rundir, task.exposure))
        say(f"run {number}: {task.arm}")
        result = run_job(job, None, os.environ.get("SLURMD_NODENAME") or "local")
        if result.note == INTERRUPTED:
            log.lost(number, INTERRUPTED)
            return None
        log.ended(number, result)
        say(f"run {number}: {task.arm}: {words_of(result)}")
        return result
    finally:
        if log is not None:
            log.close()
        folder.close()
