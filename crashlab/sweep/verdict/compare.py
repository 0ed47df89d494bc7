"""Each arm against the baseline, for one key: counts, exact probabilities, and the sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from crashlab.stats import course as courses
from crashlab.stats import multiple, poisson, ranks, rates
from crashlab.sweep import facts
from crashlab.sweep.verdict import words
from crashlab.sweep.verdict.tally import BASELINE, UNKEYED, Tally, event_key, lives, spans


class Base(NamedTuple):
    """The baseline of one key, all its arms together."""

    arms: tuple[str, ...]
    events: int
    exposure: float


def base_of(found: Tally, key: str) -> Base:
    """The baseline's events and exposure."""
    arms = tuple(arm.name for arm in found.arms if arm.is_baseline)
    return Base(arms, found.events_of(arms, key), found.total(arms))


def counts(found: Tally, key: str) -> tuple[facts.Count, ...]:
    """Events, exposure and exact limits of every arm that was counted."""
    out = []
    for arm in found.arms:
        events, exposure = found.events_of((arm.name,), key), found.exposure[arm.name]
        low: float | None
        if events:
            limits = poisson.rate_limits(events, exposure, words.LIMITS)
            low, high = limits if limits else (None, None)
        else:
            low, high = None, poisson.zero_bound(exposure, words.LIMITS)
        out.append(facts.Count(arm.name, key, events, exposure, found.unit, events / exposure, low, high))
    return tuple(out)


def comparisons(
    found: Tally, key: str, level: float, course: facts.Course | None, *, described: bool
) -> tuple[facts.Comparison, ...]:
    """One for every other arm. ``described``: the levers are tested elsewhere, so no arm is called evidence."""
    base = base_of(found, key)
    others = [arm.name for arm in found.arms if not arm.is_baseline]
    if not base.arms:
        return ()
    raw = {
        name: rates.fewer_probability(
            found.events_of((name,), key), found.exposure[name], base.events, base.exposure
        )
        for name in others
    }
    tested = [name for name in others if raw[name] is not None]
    adjusted = dict(zip(tested, multiple.holm([raw[name] or 0.0 for name in tested]), strict=True))
    return tuple(
        _compared(
            found, key, level, course, base, name, raw[name], adjusted.get(name), len(tested), described
        )
        for name in others
    )


def _compared(
    found: Tally, key: str, level: float, course: facts.Course | None, base: Base, name: str,
    p: float | None, adjusted: float | None, tried: int, described: bool,
) -> facts.Comparison:  # fmt: skip
    events, exposure = found.events_of((name,), key), found.exposure[name]
    limits = rates.ratio_limits(events, exposure, base.events, base.exposure, words.LIMITS)
    needed = rates.clean_needed(base.events, base.exposure, level) if not events else None
    speed = found.speed(name)
    longest = _outlived(found, key, base, name) if not events else _Longest()
    bunched = not events and course is not None and course.reading == "bunched" and course.source == BASELINE
    made = facts.Comparison(
        arm=name,
        key=key,
        test=None if p is None else "clean-arm" if not events else "two-rates",
        reading=_reading(p, adjusted, events * base.exposure > base.events * exposure, level, described),
        words="",
        p=p,
        p_adjusted=adjusted,
        tried=tried,
        ratio=None if not base.events else events / exposure * base.exposure / base.events,
        ratio_low=limits.low if limits else None,
        ratio_high=limits.high if limits and math.isfinite(limits.high) else None,
        needed=needed,
        needed_hours=needed * speed if needed is not None and speed is not None else None,
        outlived=longest.runs,
        outlived_p=longest.by_ranks,
        outlasting_p=longest.if_log_normal,
    )
    doubt = _not_constant(found, base, made, course, level)
    if doubt is not None:
        made = made._replace(reading="not-constant")
    said = _clean_words(found, made, base, level) if not events else _rates_words(found, made, base)
    said += doubt or ""
    unknown = found.events_of((name,), UNKEYED) if key != UNKEYED else 0
    if unknown:
        said += f" {words.events(unknown, UNKEYED)} in this arm may be of this key too."
    if bunched and course is not None:
        said += _bunched_words(found, key, made, base, course, level)
    return made._replace(words=said)


def _reading(p: float | None, adjusted: float | None, higher: bool, level: float, described: bool) -> str:
    if p is None or adjusted is None:
        return "untested"
    if higher:
        return "more"
    if described:
        return "described"
    return words.reading(p, adjusted, level)


def _not_constant(
    found: Tally, base: Base, made: facts.Comparison, course: facts.Course | None, level: float
) -> str | None:
    """Why what would be evidence under a constant rate is none, where the baseline's rate is not constant.

    With a hazard that grows only runs past the baseline's times say anything: for those the exponential
    chance is near the bound that holds for every growing hazard (Barlow and Marshall, Ann. Math. Statist.
    35, 1964). With one that falls it is starts that count and not hours, so ranks must agree.
    """
    if made.reading not in ("evidence", "weak") or course is None or course.source != BASELINE:
        return None
    own = [run for run in found.runs if run.arm == made.arm]
    if course.reading == "bunched" and made.test == "clean-arm":
        return _too_short(found, base, made, own, course.last_hours or 0.0, level)
    if course.reading == "early":
        tails = ranks.rank_tails([(spans(found, (made.arm,), made.key), spans(found, base.arms, made.key))])
        if tails is None or tails[0] * made.tried > level:
            by_ranks = "say nothing" if tails is None else f"give {words.probability(tails[0])}"
            return (
                f" Events come early in a run or not at all, so starts count and not hours: ranks {by_ranks}."
            )
    return None


def _too_short(
    found: Tally, base: Base, made: facts.Comparison, own: Sequence[facts.ArmRun], last: float, level: float
) -> str | None:
    """Runs that ended before the baseline's events come do not count, unless one lasted twice as long as those."""
    past = [run for run in own if (run.exposure.hours or 0.0) > last]
    if len(past) == len(own) or any((run.exposure.hours or 0.0) >= 2 * last for run in past):
        return None
    long = sum(getattr(run.exposure, found.unit) or 0.0 for run in past)
    chance = rates.clean_probability(base.events, base.exposure, long)
    if chance is not None and chance * made.tried <= level:
        return None
    return f" {len(own) - len(past)} of its {len(own)} runs ended before the baseline's events come."


def _clean_words(found: Tally, made: facts.Comparison, base: Base, level: float) -> str:
    unit, exposure = found.unit, found.exposure[made.arm]
    bound = poisson.zero_bound(exposure, words.LIMITS)
    said = f"{words.events(0, made.key)} in {_exposure(found, (made.arm,))}"
    if bound is not None:
        said += f"; upper bound {words.rate(bound, unit)}"
    if made.p is None:
        return f"{said}; the baseline has no event of this key either: nothing to compare with."
    said += f"; baseline {base.events} in {words.amount(base.exposure, unit)}"
    said += (
        "; if the rate were unchanged a clean run this long has probability "
        f"{words.probability(made.p)}{words.holm(made.p_adjusted, made.tried, 'arms')}: {_verdict(made)}"
    )
    if made.reading in ("not-yet", "weak") and made.needed is not None:
        said += f"; {_needed(found, made, base, level)}"
    return f"{said}."


def _needed(found: Tally, made: facts.Comparison, base: Base, level: float) -> str:
    speed = found.speed(made.arm)
    said = f"{_with_hours(made.needed or 0.0, found.unit, speed)} needed"
    if made.tried > 1:
        strict = rates.clean_needed(base.events, base.exposure, level / made.tried)
        said += f", {_with_hours(strict or 0.0, found.unit, speed)} to hold among {made.tried} arms"
    return said


def _rates_words(found: Tally, made: facts.Comparison, base: Base) -> str:
    events = found.events_of((made.arm,), made.key)
    said = (
        f"{words.events(events, made.key)} in {_exposure(found, (made.arm,))}; "
        f"baseline {base.events} in {words.amount(base.exposure, found.unit)}"
    )
    if made.ratio is not None and made.ratio_low is not None:
        top = "no upper limit" if made.ratio_high is None else f"to {words.figures(made.ratio_high, 2)}"
        said += (
            f"; rate ratio {words.figures(made.ratio, 2)} "
            f"(95 % limits {words.figures(made.ratio_low, 2)} {top})"
        )
    if made.p is None:
        return f"{said}: no comparison possible."
    if made.reading == "more":
        both = rates.two_rates_probability(events, found.exposure[made.arm], base.events, base.exposure)
        chance = words.probability(both if both is not None else 1.0)
        return (
            f"{said}: not fewer than the baseline; a split at least so uneven has probability {chance} if the "
            "rates are equal (two-sided; a higher rate is not what this sweep tests for)."
        )
    return (
        f"{said}; so few or fewer, if the rate were unchanged, has probability "
        f"{words.probability(made.p)}{words.holm(made.p_adjusted, made.tried, 'arms')}: {_verdict(made)}."
    )


def _verdict(made: facts.Comparison) -> str:
    return {
        "evidence": "evidence that the rate is lower in this arm",
        "weak": f"weak: one of {made.tried} arms tried looks like this by chance too easily",
        "not-constant": "not evidence, since the rate is not constant",
        "described": "described only; the levers are tested over all arms together",
        "not-yet": "not yet evidence",
    }.get(made.reading, "not compared")


class _Longest(NamedTuple):
    """Runs of a clean arm that outlived every baseline run, and the chance of that in two ways."""

    runs: int | None = None
    by_ranks: float | None = None
    if_log_normal: float | None = None


def _outlived(found: Tally, key: str, base: Base, name: str) -> _Longest:
    """Only where each baseline run ended in the event and no run of the arm in any."""
    theirs = lives([run for run in found.runs if run.arm in base.arms], key)
    own = [run for run in found.runs if run.arm == name]
    if not theirs or not all(life.event for life in theirs) or any(event_key(run) for run in own):
        return _Longest()
    times = [life.time for life in theirs]
    longer = [life.time for life in lives(own, key) if life.time > max(times)]
    if not longer:
        return _Longest(0)
    by_ranks = courses.outlived_probability(len(times), len(longer))
    return _Longest(len(longer), by_ranks, courses.outlasting_probability(times, max(longer)))


def _bunched_words(
    found: Tally, key: str, made: facts.Comparison, base: Base, course: facts.Course, level: float
) -> str:
    """The other reading, and the test that decides between a constant rate and a typical time."""
    last = course.last_hours
    if last is None:
        return ""
    said = (
        f" But the baseline's events come at about the same time (up to {words.duration(last)} under load), "
        "which is no constant rate; then a run that lasts well past that time says more than its length."
    )
    if made.outlived and made.outlived_p is not None:
        said += (
            f" {made.outlived} of this arm's runs outlived all of the baseline's: by ranks alone, however much "
            f"longer they lasted, that has probability {words.probability(made.outlived_p)}"
        )
        if made.outlasting_p is not None:
            said += (
                f"; if such times are log-normal, which is assumed and not known, the longest of them has "
                f"{words.probability(made.outlasting_p)}"
            )
        said += "."
    runs = courses.outliving_needed(base.events, level)
    said += (
        f" The test that decides: {runs} fresh run{'s' if runs != 1 else ''} of this arm, each at least "
        f"{words.duration(2 * last)} long, in turns with the baseline."
    )
    return said


def _exposure(found: Tally, arms: Sequence[str]) -> str:
    hours = [found.hours.get(arm) for arm in arms]
    steps = [found.steps.get(arm) for arm in arms]
    return words.exposure(
        found.total(arms),
        found.unit,
        None if None in hours else sum(h or 0.0 for h in hours),
        None if None in steps else sum(s or 0.0 for s in steps),
    )


def _with_hours(value: float, unit: str, speed: float | None) -> str:
    return words.exposure(value, unit, value * speed if speed is not None else None, None)
