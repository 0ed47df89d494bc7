"""What to run next: a pure function of the plan and of the runs so far, so that a sweep can go on anywhere.

The baseline comes first, until it has shown enough faults; then baseline and arms in turn (A B A C A …),
because heat, neighbours and drivers drift. An arm is closed when it has stayed clean for as long as the
statistics ask, when it faults like the baseline, or when nothing more can be learned from it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from crashlab.postmortem.words import counted
from crashlab.stats.rates import clean_needed
from crashlab.stats.sequential import UNCHANGED, sprt
from crashlab.sweep.facts import (
    COUNTED,
    HOURS,
    INCONCLUSIVE,
    NEVER_READY,
    NOT_APPLIED,
    REQUESTS,
    STEPS,
    Arm,
    ArmRun,
    Exposure,
)
from crashlab.sweep.plan import BISECT, Plan

OPEN, CLEAN, FAULTS, DIFFERS = "open", "clean", "faults", "not_applied"
UNUSABLE, SPENT = "unusable", "spent"
_TRIES = 2


class Task(NamedTuple):
    """A run to make. ``number`` counts within the arm; ``exposure``: stop when so much is reached, in the
    plan's unit, None: no such limit. ``why`` in words."""

    arm: str
    number: int
    exposure: float | None
    why: str


class Tally(NamedTuple):
    """An arm so far. ``events``: those of the key that counts; ``exposure`` in the plan's unit."""

    runs: int = 0
    events: int = 0
    exposure: float = 0.0
    not_applied: int = 0
    unusable: int = 0


class Standing(NamedTuple):
    """An arm's tally, whether it is closed and why, and how much clean exposure it still needs."""

    arm: Arm
    tally: Tally
    state: str
    needed: float | None


def amount(exposure: Exposure, unit: str) -> float:
    """An exposure in a unit; 0.0 where it was not told."""
    value = {STEPS: exposure.steps, HOURS: exposure.hours, REQUESTS: exposure.requests}[unit]
    return float(value or 0.0)


def _estimated(runs: Sequence[ArmRun], unit: str) -> Callable[[ArmRun], float]:
    """A run's exposure in a unit. Where it was not told (a fault within a second of the load), its hours at the
    speed of the runs that told: counted as nothing, a fault would make the mean between faults too short."""
    told = [run.exposure for run in runs if run.outcome in COUNTED and amount(run.exposure, unit)]
    hours = sum(one.hours for one in told if one.hours)
    speed = sum(amount(one, unit) for one in told if one.hours) / hours if hours else 0.0

    def of(run: ArmRun) -> float:
        return amount(run.exposure, unit) or (run.exposure.hours or 0.0) * speed

    return of


def key_of(plan: Plan, runs: Iterable[ArmRun]) -> str | None:
    """The key that counts: the plan's, or the one that the baseline has shown most often."""
    if plan.key is not None:
        return plan.key
    names = {arm.name for arm in plan.arms if arm.is_baseline}
    seen = Counter(
        run.key or run.outcome
        for run in runs
        if run.arm in names and run.outcome == plan.target and not run.at_startup
    )
    return min(seen, key=lambda key: (-seen[key], key)) if seen else None


def tally(plan: Plan, runs: Sequence[ArmRun], arm: str, key: str | None) -> Tally:
    """Count the runs of one arm. Another bug's fault ends its exposure and is no event."""
    out = Tally()
    exposure = _estimated(runs, plan.budget.unit)
    for run in runs:
        if run.arm != arm:
            continue
        event = run.outcome == plan.target and not run.at_startup and (run.key or run.outcome) == key
        unusable = run.outcome in (NEVER_READY, INCONCLUSIVE) or run.at_startup
        counts = run.outcome in COUNTED and not run.at_startup
        out = Tally(
            out.runs + 1,
            out.events + int(event),
            out.exposure + (exposure(run) if counts else 0.0),
            out.not_applied + int(run.outcome == NOT_APPLIED),
            out.unusable + int(unusable),
        )
    return out


def standings(plan: Plan, runs: Sequence[ArmRun]) -> list[Standing]:
    """Every arm as it stands, the baseline first."""
    key = key_of(plan, runs)
    tallies = {arm.name: tally(plan, runs, arm.name, key) for arm in plan.arms}
    base = tallies[plan.arms[0].name]
    tested = [arm for arm in plan.arms[1:] if not tallies[arm.name].not_applied]
    level = each_level(plan, len(tested))
    out = []
    for arm in plan.arms:
        have = tallies[arm.name]
        if arm.is_baseline:
            out.append(Standing(arm, have, _baseline_state(plan, have), None))
        else:
            out.append(_standing(plan, arm, have, base, level))
    return out


def each_level(plan: Plan, tested: int) -> float:
    """The level for one arm of several (Bonferroni): Holm's procedure asks for no more than this."""
    if plan.kind == BISECT:
        tested = math.ceil(math.log2(max(2, len(plan.arms)))) + 1
    return plan.budget.level / max(1, tested)


def _baseline_state(plan: Plan, have: Tally) -> str:
    if have.events >= plan.budget.baseline_faults:
        return FAULTS
    if have.not_applied or (have.unusable >= _TRIES and have.unusable == have.runs):
        return UNUSABLE
    return SPENT if have.runs >= plan.budget.max_baseline_runs else OPEN


def _standing(plan: Plan, arm: Arm, have: Tally, base: Tally, level: float) -> Standing:
    budget = plan.budget
    needed = clean_needed(base.events, base.exposure, level)
    left = None if needed is None else max(0.0, needed - have.exposure)
    state = OPEN
    if have.not_applied:
        state, left = DIFFERS, None
    elif have.unusable >= _TRIES:
        state, left = UNUSABLE, None
    elif have.events >= budget.arm_faults or _unchanged(plan, have, base):
        state, left = FAULTS, None
    elif not have.events and left is not None and left <= 0 and have.runs:
        state = CLEAN
    elif have.runs >= budget.max_runs:
        state = SPENT
    elif have.events:
        left = None
    return Standing(arm, have, state, left)


def _unchanged(plan: Plan, have: Tally, base: Tally) -> bool:
    """Wald's test says that the rate is still the baseline's: no need to let it fault again."""
    if not have.events or not base.events or base.exposure <= 0 or have.exposure <= 0:
        return False
    rate = base.events / base.exposure
    found = sprt(have.events, have.exposure, rate, rate / plan.budget.fold)
    return found.decision == UNCHANGED


def next_tasks(
    plan: Plan, runs: Sequence[ArmRun], running: Sequence[Task] = (), slots: int = 1
) -> list[Task]:
    """At most ``slots`` minus what runs already. Empty while nothing runs: the sweep is over."""
    out: list[Task] = []
    while len(running) + len(out) < slots:
        task = _next(plan, runs, [*running, *out])
        if task is None:
            break
        out.append(task)
    return out


def _next(plan: Plan, runs: Sequence[ArmRun], under_way: Sequence[Task]) -> Task | None:
    spent = sum(run.exposure.hours or 0.0 for run in runs) * 3600
    if plan.budget.total_for is not None and spent >= plan.budget.total_for:
        return None
    all_arms = standings(plan, runs)
    baseline = all_arms[0]
    busy = Counter(task.arm for task in under_way)
    if baseline.state in (UNUSABLE, SPENT) and baseline.tally.events < plan.budget.baseline_faults:
        return None
    if baseline.state == OPEN:
        missing = plan.budget.baseline_faults - baseline.tally.events
        room = plan.budget.max_baseline_runs - baseline.tally.runs
        if busy[baseline.arm.name] >= min(missing, room):
            return None
        return _task(plan, runs, under_way, baseline, "faults of the baseline are collected first")
    if plan.kind == BISECT:
        return None if under_way else _bisection(plan, runs, all_arms)
    pending = [one for one in all_arms[1:] if one.state == OPEN and _room(plan, one, busy[one.arm.name])]
    if not pending:
        return None
    if _baseline_is_due(plan, runs, under_way):
        return _task(plan, runs, under_way, baseline, "the baseline again, in turn with the arms")
    order = {arm.name: at for at, arm in enumerate(plan.arms)}
    chosen = min(pending, key=lambda one: (one.tally.runs + busy[one.arm.name], order[one.arm.name]))
    return _task(plan, runs, under_way, chosen, "")


def _room(plan: Plan, one: Standing, busy: int) -> bool:
    """Whether a further run of an arm, beside those under way, can be of use."""
    if one.tally.runs + busy >= plan.budget.max_runs:
        return False
    if not busy:
        return True
    return (
        one.needed is not None
        and plan.budget.run_exposure is not None
        and (one.needed > busy * plan.budget.run_exposure)
    )


def _baseline_is_due(plan: Plan, runs: Sequence[ArmRun], under_way: Sequence[Task]) -> bool:
    every = plan.budget.interleave
    if not every:
        return False
    name = plan.arms[0].name
    if sum(run.arm == name for run in runs) >= plan.budget.max_baseline_runs:
        return False
    sequence = [run.arm for run in runs] + [task.arm for task in under_way]
    since = next((at for at, arm in enumerate(reversed(sequence)) if arm == name), len(sequence))
    return since >= every


def _task(plan: Plan, runs: Sequence[ArmRun], under_way: Sequence[Task], one: Standing, why: str) -> Task:
    name = one.arm.name
    taken = [run.number for run in runs if run.arm == name] + [t.number for t in under_way if t.arm == name]
    limits = [plan.budget.run_exposure, None if one.arm.is_baseline else one.needed]
    given = [limit for limit in limits if limit]
    if not why:
        why = "no fault yet" if not one.tally.events else f"{counted(one.tally.events, 'fault')} so far"
    return Task(name, max(taken, default=-1) + 1, min(given) if given else None, why)


def _bisection(plan: Plan, runs: Sequence[ArmRun], all_arms: Sequence[Standing]) -> Task | None:
    """The order is arms[1:] and then the baseline, which faults. First its good end is checked."""
    low, high, middle = bisected(all_arms)
    if middle is None:
        return None
    what = "the end that should be clean" if low is None else f"between {low} and {high}"
    return _task(plan, runs, (), next(one for one in all_arms if one.arm.name == middle), what)


def bisected(all_arms: Sequence[Standing]) -> tuple[str | None, str, str | None]:
    """(last clean arm, first faulting arm, arm to run now). No arm to run: it is narrowed down as far as
    it goes, or the good end is not good."""
    order = [*all_arms[1:], all_arms[0]]
    first = order[0]
    if first.state == OPEN:
        return None, order[-1].arm.name, first.arm.name
    if first.state != CLEAN:
        return None, first.arm.name if first.state == FAULTS else order[-1].arm.name, None
    low, high = 0, len(order) - 1
    for at, one in enumerate(order[:-1]):
        if one.state == CLEAN:
            low = max(low, at)
        elif one.state == FAULTS:
            high = min(high, at)
    between = [at for at in range(low + 1, high) if order[at].state == OPEN]
    started = [at for at in between if order[at].tally.runs]
    middle = (low + high) / 2
    chosen = started[0] if started else min(between, key=lambda at: (abs(at - middle), at), default=None)
    return (
        order[low].arm.name,
        order[high].arm.name,
        None if chosen is None else order[chosen].arm.name,
    )
