"""The plan as an sbatch array script. An array cannot decide what to run next, so its runs are fixed:
rounds of the baseline and every arm in turn."""

from __future__ import annotations

import shlex

from crashlab.errors import UsageError
from crashlab.postmortem.words import counted
from crashlab.sweep.job import slug
from crashlab.sweep.plan import BISECT, Plan
from crashlab.sweep.schedule import Task


def tasks(plan: Plan) -> list[Task]:
    """Run N of the array is entry N-1: A B A C A …, for as many rounds as the plan says.

    Raises UsageError for a plan that must decide as it goes.
    """
    if plan.kind == BISECT:
        raise UsageError(
            "A bisection decides after each run; an array of jobs cannot.",
            hint="Run it in one job: srun crashlab sweep PLAN.",
        )
    out: list[Task] = []
    counts: dict[str, int] = {}
    baseline = plan.arms[0].name

    def add(name: str) -> None:
        out.append(Task(name, counts.get(name, 0), plan.budget.run_exposure, ""))
        counts[name] = counts.get(name, 0) + 1

    for _ in range(plan.remote.rounds):
        for at, arm in enumerate(plan.arms[1:]):
            if plan.budget.interleave and at % plan.budget.interleave == 0:
                add(baseline)
            add(arm.name)
    missing = plan.budget.baseline_faults - counts.get(baseline, 0)
    for _ in range(max(0, missing)):
        add(baseline)
    return out


def script(plan: Plan, source: str, folder: str) -> str:
    """The text for ``sbatch``. ``source``: the plan as it was named; ``folder``: the sweep's."""
    count = len(tasks(plan))
    remote = plan.remote
    lines = [
        "#!/bin/bash",
        f"#SBATCH --job-name=crashlab-{slug(plan.name)}",
        f"#SBATCH --array=1-{count}",
        "#SBATCH --ntasks=1",
        f"#SBATCH --cpus-per-task={max(1, round(remote.cpus))}",
    ]
    if remote.gpus:
        lines.append(f"#SBATCH --gres=gpu:{max(1, round(remote.gpus))}")
    if remote.memory_gb is not None:
        lines.append(f"#SBATCH --mem={round(remote.memory_gb * 1024)}M")
    minutes = round(plan.budget.run_for / 60) + 60
    lines.append(f"#SBATCH --time={minutes // 60:02d}:{minutes % 60:02d}:00")
    lines += [f"#SBATCH {option}" for option in remote.sbatch]
    command = shlex.join(plan.command)
    lines += [
        "",
        f"# {counted(count, 'run')}: {counted(remote.rounds, 'round')} of {counted(len(plan.arms) - 1, 'arm')} "
        "with the baseline in turn.",
        "# The folder must lie where every node can write. Afterwards:",
        f"#   crashlab sweep --report-only --out {shlex.quote(folder)} {shlex.quote(source)} -- {command}",
        "# A task that was cut off can be submitted again: sbatch --array=N; what is done is not repeated.",
        *remote.setup,
        f'exec crashlab sweep --task "$SLURM_ARRAY_TASK_ID" --out {shlex.quote(folder)} '
        f"{shlex.quote(source)} -- {command}",
    ]
    return "\n".join(lines) + "\n"
