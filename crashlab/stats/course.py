"""Is the rate constant? Trend over the sweep, shape of the times to an event, and a test for few events."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist, fmean, stdev
from typing import NamedTuple

from crashlab.stats.special import beta_i, crossing
from crashlab.stats.survival import Life

_SHAPES = (-5.0, 7.0)
"""Natural logarithms of the smallest and the largest Weibull shape that is looked for."""
_SHORTEST = 1e-12


class Trend(NamedTuple):
    """Laplace's statistic: above 0 events come later than evenly, below 0 earlier; ``p`` is two-sided."""

    statistic: float
    p: float


class Weibull(NamedTuple):
    """S(t) = exp(−(t/scale)^shape), by maximum likelihood; limits of the shape by likelihood ratio.

    ``shape`` 1: constant rate. The estimate is a little too high for few events (about 1.4/n of it).
    """

    shape: float
    low: float
    high: float
    scale: float


def laplace(times: Sequence[float], end: float, *, ends_at_event: bool = False) -> Trend | None:
    """Trend of events at these times in an exposure from 0 to ``end`` (Cox and Lewis, 1966).

    ``ends_at_event``: observation stopped at the last event, which then says nothing itself. None below
    two events (three with ``ends_at_event``); the normal approximation is good from about four.
    """
    told = sorted(times)[:-1] if ends_at_event else list(times)
    if len(told) < 2 or end <= 0:
        return None
    statistic = (math.fsum(told) / len(told) - end / 2) / (end * math.sqrt(1 / (12 * len(told))))
    return Trend(statistic, 2 * NormalDist().cdf(-abs(statistic)))


def bunching_probability(times: Sequence[float]) -> float | None:
    """Chance that the earliest of these times is so close to their mean if the rate were constant.

    For n exponential times n·min/sum is Beta(1, n−1), so the chance is (1 − n·min/sum)^(n−1): exact from
    two events on. Every run must have ended by its event; with censored runs it does not hold.
    """
    total = math.fsum(times)
    if len(times) < 2 or total <= 0 or min(times) < 0:
        return None
    return max(0.0, 1 - len(times) * min(times) / total) ** (len(times) - 1)


def outlived_probability(events: int, longer: int) -> float:
    """Chance that ``longer`` runs of one arm all outlive ``events`` of another if nothing differs.

    1/C(events+longer, longer): ranks only, whatever the course of the rate within a run.
    """
    return 1 / math.comb(events + longer, longer)


def outliving_needed(events: int, level: float = 0.05) -> int | None:
    """The fewest runs for which :func:`outlived_probability` is at most ``level``; None without an event."""
    if events < 1:
        return None
    longer = 1
    while outlived_probability(events, longer) > level:
        longer += 1
    return longer


def outlasting_probability(times: Sequence[float], longer: float) -> float | None:
    """Chance that one more life exceeds ``longer`` if all are log-normal: Student's prediction of the next.

    Exact under that shape, which is an assumption and no finding; it uses how far apart the times lie, which
    ranks do not. None below two times; 0.0 when they are all equal and ``longer`` exceeds them.
    """
    if len(times) < 2 or min(times) <= 0 or longer <= 0:
        return None
    logs = [math.log(time) for time in times]
    mean, deviation = fmean(logs), stdev(logs)
    distance = math.log(longer) - mean
    freedom = len(times) - 1
    if deviation <= 0:
        return 0.0 if distance > 0 else 1.0
    t = distance / (deviation * math.sqrt(1 + 1 / len(times)))
    tail = beta_i(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2
    return tail if t > 0 else 1 - tail


def weibull(lives: Sequence[Life], level: float = 0.05) -> Weibull | None:
    """Fit to lives with right censoring; None below two distinct event times.

    The score equation in the shape has one root (Farnum and Booth, IEEE Trans. Reliability 46, 1997).
    """
    longest = max((life.time for life in lives), default=0.0)
    if longest <= 0:
        return None
    logs = [(math.log(max(life.time / longest, _SHORTEST)), life.event) for life in lives]
    events = [x for x, event in logs if event]
    if len(set(events)) < 2:
        return None
    every = [x for x, _ in logs]
    mean = math.fsum(events) / len(events)

    def score(log_shape: float) -> float:
        k = math.exp(log_shape)
        weights = [math.exp(k * x) for x in every]
        return (
            math.fsum(w * x for w, x in zip(weights, every, strict=True)) / math.fsum(weights) - 1 / k - mean
        )

    def log_likelihood(log_shape: float) -> float:
        k = math.exp(log_shape)
        total = math.fsum(math.exp(k * x) for x in every)
        return len(events) * (log_shape - math.log(total / len(events)) + (k - 1) * mean - 1)

    best = crossing(score, *_SHAPES)
    k = math.exp(best)
    scale = (math.fsum(math.exp(k * x) for x in every) / len(events)) ** (1 / k) * longest
    low, high = _likelihood_limits(log_likelihood, best, level)
    return Weibull(k, low, high, scale)


def _likelihood_limits(
    log_likelihood: Callable[[float], float], best: float, level: float
) -> tuple[float, float]:
    """Where twice the loss of log likelihood reaches the χ² quantile of one degree of freedom."""
    allowed = NormalDist().inv_cdf(1 - level / 2) ** 2 / 2
    floor = log_likelihood(best) - allowed
    low = crossing(lambda x: log_likelihood(x) - floor, _SHAPES[0], best)
    high = crossing(lambda x: floor - log_likelihood(x), best, _SHAPES[1])
    return math.exp(low), math.exp(high)
