"""Two rates of rare events, held against each other exactly.

Given all events of both arms, those of one arm are binomial in its share of the exposure (Przyborowski
and Wilenski, Biometrika 31, 1940). Where an arm's exposure ends with its last event instead of at a time
fixed beforehand, these probabilities are still no smaller than the true ones.
"""

from __future__ import annotations

import math

from crashlab.stats.interval import Interval
from crashlab.stats.proportions import clopper_pearson
from crashlab.stats.special import beta_i


def clean_probability(events: int, exposure: float, clean: float) -> float | None:
    """Chance that an arm stays clean for ``clean`` although its rate is that of ``events`` in ``exposure``.

    (T₀/(T₀+T))^k; exact for a baseline stopped at its k-th event as well as at a fixed time. None without
    an event or without exposure of the baseline: then there is nothing to compare with.
    """
    if events <= 0 or exposure <= 0 or clean < 0:
        return None
    return (exposure / (exposure + clean)) ** events


def clean_needed(events: int, exposure: float, level: float = 0.05) -> float | None:
    """The clean exposure at which :func:`clean_probability` falls to ``level``."""
    if events <= 0 or exposure <= 0:
        return None
    return exposure * math.expm1(-math.log(level) / events)


def clean_needed_factor(events: int | None, level: float = 0.05) -> float:
    """The same in units of the baseline's mean exposure between events; None: its rate is known exactly."""
    if events is None:
        return -math.log(level)
    return events * math.expm1(-math.log(level) / events)


def fewer_probability(events: int, exposure: float, base_events: int, base_exposure: float) -> float | None:
    """One-sided: chance of at most ``events`` here, given all events of both, if the rates were equal.

    With no event here this is :func:`clean_probability`. None when there is no event or no exposure.
    """
    if exposure <= 0 or base_exposure <= 0 or events + base_events <= 0:
        return None
    if base_events == 0:
        return 1.0
    share = base_exposure / (base_exposure + exposure)
    return beta_i(base_events, events + 1, share)


def two_rates_probability(r1: int, t1: float, r2: int, t2: float) -> float | None:
    """Two-sided conditional binomial test: twice the smaller tail, at most 1 (central, as the interval)."""
    less, more = fewer_probability(r1, t1, r2, t2), fewer_probability(r2, t2, r1, t1)
    return None if less is None or more is None else min(1.0, 2 * min(less, more))


def ratio_limits(r1: int, t1: float, r2: int, t2: float, level: float = 0.05) -> Interval | None:
    """Exact limits of rate 1 over rate 2: Clopper-Pearson for the binomial share, turned into a ratio."""
    if t1 <= 0 or t2 <= 0 or r1 + r2 <= 0:
        return None
    share = clopper_pearson(r1, r1 + r2, level)
    low = share.low / (1 - share.low) * t2 / t1
    high = share.high / (1 - share.high) * t2 / t1 if share.high < 1 else math.inf
    return Interval(low, high)
