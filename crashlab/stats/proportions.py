"""Exact statements about shares: Clopper-Pearson limits, Fisher's test for two shares, a binomial tail."""

from __future__ import annotations

import math
from functools import lru_cache

from crashlab.stats.interval import Interval
from crashlab.stats.special import beta_i, crossing

_NEGLIGIBLE = 1e-17


def binomial_pmf(k: int, n: int, p: float) -> float:
    """P(X = k) for n trials of probability p."""
    if k < 0 or k > n:
        return 0.0
    if p <= 0.0 or p >= 1.0:
        return 1.0 if k == (0 if p <= 0.0 else n) else 0.0
    return math.exp(_log_choose(n, k) + k * math.log(p) + (n - k) * math.log1p(-p))


def binomial_at_most(k: int, n: int, p: float) -> float:
    """P(X <= k). Sums the shorter tail outwards until its terms no longer count; error about 1e-12."""
    if k < 0:
        return 0.0
    if k >= n:
        return 1.0
    if k > n * p:
        return max(0.0, 1.0 - _tail(range(k + 1, n + 1), n, p))
    return min(1.0, _tail(range(k, -1, -1), n, p))


def _tail(numbers: range, n: int, p: float) -> float:
    """The sum over numbers that lead away from the middle, where each term is smaller than the last."""
    total = 0.0
    for i in numbers:
        term = binomial_pmf(i, n, p)
        total += term
        if term < total * _NEGLIGIBLE:
            break
    return total


def binomial_at_least(k: int, n: int, p: float) -> float:
    """P(X >= k)."""
    return binomial_at_most(n - k, n, 1.0 - p)


@lru_cache(maxsize=4096)
def clopper_pearson(k: int, n: int, level: float = 0.05) -> Interval:
    """Exact two-sided limits of a share of which k of n were seen (Clopper and Pearson, Biometrika 26, 1934).

    ``level`` is the chance that the share lies outside, half of it on each side. Raises ValueError unless
    0 <= k <= n and 0 < level < 1. With n = 0 nothing is known: 0 to 1.
    """
    if not 0 <= k <= n or not 0.0 < level < 1.0:
        raise ValueError(f"no share: {k} of {n} at level {level}")
    if n == 0:
        return Interval(0.0, 1.0)
    half = level / 2
    # The binomial tails as incomplete beta functions: P(X >= k) = I_p(k, n - k + 1).
    low = 0.0 if k == 0 else crossing(lambda p: beta_i(k, n - k + 1, p) - half, 0.0, 1.0)
    high = 1.0 if k == n else crossing(lambda p: beta_i(k + 1, n - k, p) - (1.0 - half), 0.0, 1.0)
    return Interval(low, high)


def fisher_more(k1: int, n1: int, k2: int, n2: int) -> float:
    """One-sided Fisher test: how often the first share would be as high as k1 of n1 by chance, if both
    groups had the same share and k1 + k2 of n1 + n2 in all. 1.0 if a group is empty."""
    if not 0 <= k1 <= n1 or not 0 <= k2 <= n2:
        raise ValueError(f"no shares: {k1} of {n1}, {k2} of {n2}")
    total, hits = n1 + n2, k1 + k2
    if not n1 or not n2:
        return 1.0
    whole = _log_choose(total, hits)
    terms = (
        math.exp(_log_choose(n1, i) + _log_choose(n2, hits - i) - whole)
        for i in range(k1, min(n1, hits) + 1)
        if hits - i <= n2
    )
    return min(1.0, math.fsum(terms))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
