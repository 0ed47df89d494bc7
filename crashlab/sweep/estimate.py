"""What a plan will cost, before anything is run."""

from __future__ import annotations

from collections.abc import Iterator

from crashlab.postmortem.words import counted
from crashlab.soak.exposure import duration
from crashlab.stats.rates import clean_needed_factor
from crashlab.sweep.catalogue import way_words
from crashlab.sweep.facts import HOURS, Arm
from crashlab.sweep.job import job_of, ways_of
from crashlab.sweep.lever import UNSET, VARIABLE
from crashlab.sweep.plan import Plan
from crashlab.sweep.probe import Server
from crashlab.sweep.schedule import Task, each_level


def dry_run(plan: Plan, server: Server) -> Iterator[str]:
    """Arms with what will be set and how, and the cost in words. Raises UsageError for a lever that this
    server does not have."""
    ways = ways_of(plan, server)
    asked = "its help was read" if server.options is not None else "its help was not read"
    yield f"plan      {plan.name}: {plan.kind}, {counted(len(plan.arms) - 1, 'arm')} and the baseline"
    yield f"server    version {server.version or 'unknown'}; {asked}"
    yield f"baseline  {' '.join(_launch(plan, plan.arms[0], ways))}"
    for arm in plan.arms[1:]:
        yield f"arm       {arm.name}"
        yield f"          {' '.join(_launch(plan, arm, ways))}"
        for setting in arm.levers:
            if setting in plan.arms[0].levers:
                continue
            lever = plan.levers[setting.lever]
            sources = ", ".join(dict.fromkeys(show.source for show in lever.shows)) or "nothing"
            value = UNSET if setting.value is None else setting.value
            yield f"          {lever.id}={value} by {way_words(ways[lever.id])}; shown by {sources}"
            for sentence in lever.confounds:
                yield f"          but: {sentence}"
            if lever.timing:
                yield "          but: It changes timing; an absence of faults proves little."
    yield from cost(plan)


def cost(plan: Plan) -> Iterator[str]:
    """How much exposure the arms need in units of the baseline's mean, and the bounds that the plan sets."""
    budget = plan.budget
    tested = len(plan.arms) - 1
    level = each_level(plan, tested)
    factor = clean_needed_factor(budget.baseline_faults, level)
    yield (
        f"cost      the baseline runs until it has faulted {budget.baseline_faults} times; then each arm that "
        f"stays clean needs {factor:.1f} times the mean exposure between two faults "
        f"(level {budget.level:g} over {counted(tested, 'arm')})"
    )
    slow = sum(_slowdown(plan, arm) for arm in plan.arms[1:])
    turns = 1 + (1 / budget.interleave if budget.interleave else 0)
    means = budget.baseline_faults + factor * slow * turns
    yield (
        f"          if every arm is clean about {means:,.0f} such means in all, with the baseline in turn; "
        "an arm that faults ends sooner"
    )
    yield (
        f"          at most {duration(budget.run_for)} a run, {counted(budget.max_runs, 'run')} an arm"
        + (f", {duration(budget.total_for)} under load in all" if budget.total_for is not None else "")
        + (f", {budget.run_exposure:,.0f} {budget.unit} a run" if budget.run_exposure else "")
    )
    for mean in (0.1, 1.0):
        yield (
            f"          for example: a fault every {duration(mean * 3600)} under load makes about "
            f"{duration(means * mean * 3600)}"
        )
    if budget.unit != HOURS:
        yield f"          exposure is counted in {budget.unit}; starting and stopping the server comes on top"


def _slowdown(plan: Plan, arm: Arm) -> float:
    out = 1.0
    for setting in arm.levers:
        if setting not in plan.arms[0].levers:
            out *= plan.levers[setting.lever].slowdown
    return out


def _launch(plan: Plan, arm: Arm, ways: object) -> list[str]:
    assert isinstance(ways, dict)
    job = job_of(plan, ways, Task(arm.name, 0, None, ""), run=1, folder="", cwd="", token="")
    words = [f"{name}={value}" for name, value in sorted(job.variables.items()) if value is not None]
    words += [f"(without {name})" for name, value in sorted(job.variables.items()) if value is None]
    names = {ways[setting.lever].name for setting in arm.levers if ways[setting.lever].kind == VARIABLE}
    shown = [word for word in words if word.partition("=")[0] in names or word.startswith("(without")]
    return [*shown, *job.argv]
