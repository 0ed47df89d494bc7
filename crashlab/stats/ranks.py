"""Two groups of runs compared by who has the event first, within strata: the log-rank idea with exact sums.

At each event one of the runs still at risk has it; if the groups do not differ, it is one of the first group
with the chance n₁/(n₁+n₂), whatever the hazard does with uptime and whenever other runs were ended (Mantel,
Cancer Chemotherapy Reports 50, 1966; Peto and Peto, JRSS A 135, 1972). The sum over all events is convolved
instead of taken as normal, so that few events are no trouble.

Exposure-weighted counts will not do here: an event ends its own run, so its group's exposure is short just
because of it. In one pair of arms that errs on the safe side; over many small strata it does not: in simulation,
32 pairs of runs that differed in nothing were told apart 13 % of the time at a level of 5 %.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import NormalDist
from typing import NamedTuple

from crashlab.stats.survival import Life

_CONVOLVED = 3000
"""Above so many events the convolution would take seconds and the normal distribution is good enough."""


class _Draw(NamedTuple):
    """Events at one time: how many of ``events`` are in the first group, of ``first`` and ``second`` at risk."""

    events: int
    first: int
    second: int


Stratum = tuple[Sequence[Life], Sequence[Life]]


def two_sided(tails: tuple[float, float]) -> float:
    """Twice the smaller of :func:`rank_tails`, at most 1."""
    return min(1.0, 2 * min(tails))


def rank_tails(strata: Iterable[Stratum]) -> tuple[float, float] | None:
    """The chances of so few, and of so many, events in the first group if the groups do not differ.

    None when no event tells anything.
    """
    seen, draws = 0, list[_Draw]()
    for first, second in strata:
        had, told = _draws(first, second)
        seen += had
        draws += told
    if not draws:
        return None
    if sum(draw.events for draw in draws) > _CONVOLVED:
        return _normal_tails(seen, draws)
    distribution = [1.0]
    for draw in draws:
        distribution = _convolved(distribution, _hypergeometric(draw))
    return min(1.0, math.fsum(distribution[: seen + 1])), min(1.0, math.fsum(distribution[seen:]))


def separation_needed(questions: int, level: float = 0.05) -> int:
    """Runs a side after which one pair of arms alone, all with the event against none, tells them apart.

    Two-sided and with Bonferroni's share for the first of so many questions: 2/C(2r, r) <= level/questions.
    """
    runs = 1
    while 2 / math.comb(2 * runs, runs) > level / max(1, questions):
        runs += 1
    return runs


def _draws(first: Sequence[Life], second: Sequence[Life]) -> tuple[int, list[_Draw]]:
    """How often the first group had an event while both were at risk, and those events."""
    ends = [sorted(life.time for life in group) for group in (first, second)]
    events = [Counter(life.time for life in group if life.event) for group in (first, second)]
    seen, out = 0, []
    for time in sorted({*events[0], *events[1]}):
        at_risk = [len(times) - bisect_left(times, time) for times in ends]
        number = events[0][time] + events[1][time]
        if all(at_risk) and number < sum(at_risk):
            seen += events[0][time]
            out.append(_Draw(number, at_risk[0], at_risk[1]))
    return seen, out


def _hypergeometric(draw: _Draw) -> list[float]:
    whole = math.comb(draw.first + draw.second, draw.events)
    return [
        math.comb(draw.first, k) * math.comb(draw.second, draw.events - k) / whole
        for k in range(draw.events + 1)
    ]


def _normal_tails(seen: int, draws: Sequence[_Draw]) -> tuple[float, float]:
    mean, variance = 0.0, 0.0
    for events, first, second in draws:
        total = first + second
        share = first / total
        mean += events * share
        variance += events * share * (1 - share) * (total - events) / max(1, total - 1)
    if variance <= 0:
        return 1.0, 1.0
    normal = NormalDist(mean, math.sqrt(variance))
    return normal.cdf(seen + 0.5), 1 - normal.cdf(seen - 0.5)


def _convolved(a: list[float], b: list[float]) -> list[float]:
    out = [0.0] * (len(a) + len(b) - 1)
    for i, left in enumerate(a):
        for j, right in enumerate(b):
            out[i + j] += left * right
    return out
