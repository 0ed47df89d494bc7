"""When within a run the events come: survival curves, and whether the rate is constant at all."""

from __future__ import annotations

from collections.abc import Sequence

from crashlab.stats import course as courses
from crashlab.stats import survival as lifetimes
from crashlab.sweep import facts
from crashlab.sweep.verdict import words
from crashlab.sweep.verdict.tally import BASELINE, Tally, event_key, lives

ENOUGH = 10
"""Events before a shape is fitted: below that it says next to nothing."""
_BUNCHED_SHAPE = 2.0
_BUNCHED_CHANCE = 0.01


def survival(found: Tally, key: str) -> tuple[facts.Survival, ...]:
    """A curve for each arm whose runs tell their hours."""
    out = []
    for arm in found.arms:
        own = lives([run for run in found.runs if run.arm == arm.name], key)
        if own:
            steps = tuple(facts.SurvivalStep(*step) for step in lifetimes.kaplan_meier(own, words.LIMITS))
            ended = tuple(sorted(life.time for life in own if not life.event))
            out.append(facts.Survival(arm.name, key, steps, ended))
    return tuple(out)


def course(found: Tally, key: str) -> facts.Course | None:
    """Constant rate or not, from the baseline, from the arm with most events, or from all that have any."""
    chosen, whose = _chosen(found, key)
    own = lives(chosen, key)
    times = [life.time for life in own if life.event]
    if not times:
        return None
    last = max(times)
    if len(times) >= ENOUGH:
        return _fitted(key, chosen, own, whose, last)
    chance = courses.bunching_probability(times) if all(life.event for life in own) else None
    head = f"{len(times)} event{'s' if len(times) != 1 else ''} with a time ({whose})"
    if chance is not None and chance <= _BUNCHED_CHANCE:
        said = (
            f"{head}: too few to fit a shape, but they lie between {words.duration(min(times))} and "
            f"{words.duration(last)} under load; times so close together have probability "
            f"{words.probability(chance)} under a constant rate. Both readings are given."
        )
        return facts.Course(
            key, len(times), "bunched", said, bunching_p=chance, last_hours=last, source=whose
        )
    said = (
        f"{head}: a constant rate cannot be told from one that changes with uptime before there are {ENOUGH}."
    )
    return facts.Course(key, len(times), "too-few", said, bunching_p=chance, last_hours=last, source=whose)


def _chosen(found: Tally, key: str) -> tuple[list[facts.ArmRun], str]:
    """One arm if it has events enough; pooled runs of different arms would blur the shape."""

    def number(names: set[str]) -> int:
        return sum(1 for run in found.runs if run.arm in names and event_key(run) == key)

    baseline = {arm.name for arm in found.arms if arm.is_baseline}
    having = [arm.name for arm in found.arms if found.events_of((arm.name,), key)]
    most = max(having, key=lambda name: found.events_of((name,), key), default=None)
    names, whose = baseline, BASELINE
    if most is not None and number(baseline) < ENOUGH:
        if number({most}) >= ENOUGH or number(baseline) < 2:
            names, whose = {most}, f"arm {most}"
        if number(names) < ENOUGH <= number(set(having)):
            names, whose = set(having), f"{len(having)} arms together"
    return [run for run in found.runs if run.arm in names], whose


def _fitted(
    key: str, runs: Sequence[facts.ArmRun], own: Sequence[lifetimes.Life], whose: str, last: float
) -> facts.Course | None:
    fit = courses.weibull(own)
    events = sum(1 for life in own if life.event)
    trend = _trend(runs, key)
    if fit is None:
        said = f"{events} events ({whose}), all at {words.duration(last)} under load: no constant rate."
        return facts.Course(key, events, "bunched", said, last_hours=last, source=whose)
    reading = "constant-not-contradicted"
    meaning = "a constant rate is not contradicted"
    if fit.low > 1 and fit.shape >= _BUNCHED_SHAPE:
        reading, meaning = "bunched", "the events bunch at a typical time: no constant rate"
    elif fit.low > 1:
        meaning = "the hazard seems to grow with uptime, not by much"
    elif fit.high < 1:
        reading, meaning = "early", "events come early in a run or not at all: long runs say less than many"
    said = (
        f"{events} events ({whose}): Weibull shape {words.figures(fit.shape, 2)} "
        f"(95 % limits {words.figures(fit.low, 2)} to {words.figures(fit.high, 2)}; 1 is a constant rate): {meaning}."
    )
    if trend is not None:
        drift = "no trend" if trend.p > 0.05 else "later in" if trend.statistic > 0 else "earlier in"
        more = f"{drift} over the sweep" if drift == "no trend" else f"events crowd {drift} the sweep"
        said += f" Laplace {trend.statistic:+.1f} (p {words.probability(trend.p)}): {more}."
    return facts.Course(
        key,
        events,
        reading,
        said,
        laplace=trend.statistic if trend else None,
        laplace_p=trend.p if trend else None,
        shape=fit.shape,
        shape_low=fit.low,
        shape_high=fit.high,
        scale_hours=fit.scale,
        last_hours=last,
        source=whose,
    )


def _trend(runs: Sequence[facts.ArmRun], key: str) -> courses.Trend | None:
    """Laplace over the hours under load of all runs, one after the other as they were started."""
    if any(run.started_utc is None for run in runs):
        return None
    clock, times = 0.0, []
    ends_at_event = False
    for run in sorted(runs, key=lambda run: run.started_utc or ""):
        for life in lives([run], key):
            clock += life.time
            ends_at_event = life.event
            if life.event:
                times.append(clock)
    return courses.laplace(times, clock, ends_at_event=ends_at_event)
