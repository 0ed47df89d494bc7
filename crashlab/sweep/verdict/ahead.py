"""What to run next, and for how long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crashlab.stats import course as courses
from crashlab.stats import ranks, rates
from crashlab.sweep import facts
from crashlab.sweep.verdict import words
from crashlab.sweep.verdict.compare import base_of
from crashlab.sweep.verdict.effects import assignments
from crashlab.sweep.verdict.tally import BASELINE, Tally

ENOUGH_BASELINE = 3
"""Baseline events before a lever is worth testing: with one, a clean arm needs 19 times its exposure."""
_LISTED = 12


def next_steps(
    found: Tally,
    arms: Sequence[facts.Arm],
    key: str,
    level: float,
    compared: Sequence[facts.Comparison],
    effects: Sequence[facts.LeverEffect],
    course: facts.Course | None,
    *,
    matrix: bool,
) -> tuple[facts.NextStep, ...]:
    """The baseline first, then the arms that lack exposure, then the confirmation of what was found."""
    steps: list[facts.NextStep] = []
    if matrix:
        steps += _counterparts(found, arms, key, level, effects)
    else:
        steps += _baseline(found, key)
        steps += _clean_arms(found, key, level, compared)
    if course is not None and course.reading == "bunched" and course.source == BASELINE:
        steps += _deciding(found, key, level, compared, course)
    if any(effect.reading == "evidence" for effect in effects):
        steps.append(
            facts.NextStep(
                None,
                "Confirm it: fresh runs with and without what was named, in turns. The numbers here also chose "
                "what to believe; only new runs are free of that.",
            )
        )
    return tuple(steps[:_LISTED])


def _baseline(found: Tally, key: str) -> Iterator[facts.NextStep]:
    base = base_of(found, key)
    if not base.arms or base.events >= ENOUGH_BASELINE:
        return
    name = base.arms[0]
    missing = ENOUGH_BASELINE - base.events
    said = f"The baseline has {words.events(base.events, key)}: collect {missing} more before testing a lever"
    if not base.events:
        yield facts.NextStep(name, f"{said}; how long that takes cannot be told yet.")
        return
    more = missing * base.exposure / base.events
    yield _step(found, name, more, f"{said}, about ", " at its rate so far.")


def _clean_arms(
    found: Tally, key: str, level: float, compared: Sequence[facts.Comparison]
) -> Iterator[facts.NextStep]:
    base = base_of(found, key)
    for item in compared:
        if item.test != "clean-arm" or item.reading not in ("not-yet", "weak"):
            continue
        goal = rates.clean_needed(base.events, base.exposure, level / max(1, item.tried))
        left = (goal or 0.0) - found.exposure[item.arm]
        if left > 0:
            among = f" among {item.tried} arms" if item.tried > 1 else ""
            after = f": if that stays clean it is evidence{among}."
            yield _step(found, item.arm, left, f"Run arm {item.arm} for another ", after)


def _deciding(
    found: Tally, key: str, level: float, compared: Sequence[facts.Comparison], course: facts.Course
) -> Iterator[facts.NextStep]:
    """Long runs that outlive the baseline's: valid whatever the course of the rate."""
    base = base_of(found, key)
    runs = courses.outliving_needed(base.events, level)
    if runs is None or course.last_hours is None:
        return
    each = 2 * course.last_hours
    for item in compared:
        if item.test == "clean-arm" and item.reading in ("not-yet", "weak", "not-constant"):
            said = (
                f"Run arm {item.arm} {runs} times afresh, each at least {words.duration(each)}: if all outlive the "
                f"baseline's {base.events}, chance alone has probability "
                f"{words.probability(courses.outlived_probability(base.events, runs))}, however the rate runs."
            )
            yield facts.NextStep(item.arm, said, runs * each, facts.HOURS, runs * each)


def _counterparts(
    found: Tally, arms: Sequence[facts.Arm], key: str, level: float, effects: Sequence[facts.LeverEffect]
) -> Iterator[facts.NextStep]:
    """Matrix plans: the arm with most events against the same arm with one undecided lever turned."""
    having = sorted(found.arms, key=lambda arm: -found.events_of((arm.name,), key))
    if not having or not found.events_of((having[0].name,), key):
        return
    worst, values = having[0].name, assignments(arms)
    by_value = {tuple(value.items()): name for name, value in values.items()}
    for effect in effects:
        if effect.kind != "alone" or effect.reading not in ("weak", "not-yet", "untested"):
            continue
        lever = effect.levers[0].lever
        for other in sorted({v[lever] for v in values.values()} - {values[worst][lever]}, key=str):
            name = by_value.get(tuple({**values[worst], lever: other}.items()))
            if name is not None and not found.events_of((name,), key):
                yield from _more_runs(found, worst, name, facts.Setting(lever, other), level, effect.tried)


def _more_runs(
    found: Tally, worst: str, name: str, turned: facts.Setting, level: float, tried: int
) -> Iterator[facts.NextStep]:
    """As many runs of the two as would tell them apart by themselves."""
    done = {arm: sum(1 for run in found.runs if run.arm == arm) for arm in (worst, name)}
    goal = ranks.separation_needed(tried, level)
    missing = max(0, goal - done[worst]) + max(0, goal - done[name])
    if not missing:
        return
    mean = found.total((worst, name)) / max(1, sum(done.values()))
    before = f"Bring arm {worst} and arm {name} (the same with {words.setting(turned)}) to {goal} runs each, "
    after = " more: if the first still faults each time and the second never, the lever is told apart from chance."
    yield _step(found, name, missing * mean, before, after)


def _step(found: Tally, arm: str, exposure: float, before: str, after: str) -> facts.NextStep:
    """A step whose sentence has the amount between ``before`` and ``after``."""
    speed = found.speed(arm)
    hours = exposure * speed if speed is not None else exposure if found.unit == facts.HOURS else None
    shown = words.exposure(exposure, found.unit, hours, None)
    return facts.NextStep(arm, f"{before}{shown}{after}", exposure, found.unit, hours)
