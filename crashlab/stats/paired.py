"""Two arms, the same questions: exact McNemar on the pairs that differ, limits, and what a test can see.

McNemar, Psychometrika 12 (1947). Only pairs that differ tell anything: of ``lost`` (first right, second
wrong) and ``won`` (the other way) each is as likely as the other if the arms answer equally well.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from crashlab.stats.interval import Interval
from crashlab.stats.proportions import binomial_at_least, binomial_pmf, clopper_pearson

_SPREAD = 7.0
"""Standard deviations of the number of differing pairs that the power sum runs over."""
_STEP = 0.001


class Pairs(NamedTuple):
    """Counts of questions: both right, only the first arm, only the second, neither."""

    both: int = 0
    lost: int = 0
    won: int = 0
    neither: int = 0

    @property
    def total(self) -> int:
        """All pairs."""
        return self.both + self.lost + self.won + self.neither

    @property
    def differing(self) -> int:
        """Pairs in which exactly one arm is right."""
        return self.lost + self.won

    @property
    def drop(self) -> float | None:
        """Share of right answers that the second arm has less than the first; None without pairs."""
        return (self.lost - self.won) / self.total if self.total else None


def mcnemar(lost: int, won: int) -> float:
    """Two-sided exact p: min(1, 2 * P(at most the smaller one of lost + won fair coins))."""
    if lost < 0 or won < 0:
        raise ValueError(f"no counts: {lost}, {won}")
    total = lost + won
    tail = sum(math.comb(total, i) for i in range(min(lost, won) + 1))
    return min(1.0, 2 * (tail / (1 << total)) if total < 1000 else 2 * _ratio(tail, total))


def _ratio(tail: int, total: int) -> float:
    """tail / 2**total without leaving the range of a float."""
    return math.exp(math.log(tail) - total * math.log(2)) if tail else 0.0


def drop_limits(pairs: Pairs, level: float = 0.05) -> Interval | None:
    """Limits of the drop in the share of right answers, -1 to 1; None without pairs.

    Exact limits of the losses' share among differing pairs, and exact limits of the share that
    differs, each at half of ``level``: together they miss at most that often (Bonferroni), so rather too wide.
    """
    if not pairs.total:
        return None
    share = clopper_pearson(pairs.lost, pairs.differing, level / 2)
    differ = clopper_pearson(pairs.differing, pairs.total, level / 2)
    ends = [(2 * s - 1) * d for s in share for d in differ]
    return Interval(min(ends), max(ends))


@lru_cache(maxsize=4096)
def smallest_significant(total: int, alpha: float) -> int | None:
    """Of ``total`` differing pairs, how many must be losses for p <= alpha; None: not even all."""
    tail, most = 0.0, None
    # ten standard deviations below the middle nothing is left that could add up to alpha
    for won in range(max(0, total // 2 - 5 * math.isqrt(total) - 2), total // 2 + 1):
        tail += binomial_pmf(won, total, 0.5)
        if 2 * tail > alpha:
            break
        most = won
    if most is None:
        # so strict a level, or so few pairs: only the exact sum can tell
        return next(
            (total - won for won in range(total // 2, -1, -1) if mcnemar(total - won, won) <= alpha), None
        )
    return total - most


def power(count: int, drop: float, noise: float, alpha: float) -> float:
    """Probability that a drop is shown at level ``alpha`` with ``count`` questions.

    ``drop`` is the true fall of the share of right answers; ``noise`` the share of questions that
    flip either way without any fall, half of them in each direction.
    """
    differ = min(1.0, drop + noise)
    if count <= 0 or differ <= 0.0:
        return 0.0
    losing = (drop + noise / 2) / (drop + noise)
    mean, spread = count * differ, math.sqrt(count * differ * (1.0 - differ))
    low = max(0, math.floor(mean - _SPREAD * spread - 1))
    high = min(count, math.ceil(mean + _SPREAD * spread + 1))
    total = 0.0
    for number in range(low, high + 1):
        needed = smallest_significant(number, alpha)
        if needed is not None:
            total += binomial_pmf(number, count, differ) * binomial_at_least(needed, number, losing)
    return min(1.0, total)


def detectable_drop(count: int, noise: float, alpha: float, wanted: float = 0.8) -> float | None:
    """The smallest fall of the share of right answers that is shown with probability ``wanted``.

    In steps of a tenth of a point; None if even losing every answer would not be shown.
    """
    most = round(1.0 / _STEP)
    low, high = 0, min(most, 8)
    while power(count, high * _STEP, noise, alpha) < wanted:
        if high == most:
            return None
        low, high = high, min(most, 2 * high)
    while low + 1 < high:
        middle = (low + high) // 2
        if power(count, middle * _STEP, noise, alpha) >= wanted:
            high = middle
        else:
            low = middle
    return high * _STEP
