"""Rates of rare events: exact limits for a count of events in some exposure."""

from __future__ import annotations

import math
from functools import lru_cache

from crashlab.stats.interval import Interval
from crashlab.stats.special import crossing, gamma_p, gamma_q


@lru_cache(maxsize=4096)
def count_limits(events: int, level: float = 0.05) -> Interval:
    """Exact central limits for the mean of a Poisson count (Garwood, Biometrika 28, 1936).

    Half the χ² quantiles α/2 with 2r degrees of freedom and 1−α/2 with 2r+2. For no event the low limit is
    0 and the high one is still the two-sided one; :func:`zero_bound` is the usual one-sided statement.
    """
    tail = level / 2
    top = events + 1 + 12 * math.sqrt(events + 1) - 4 * math.log(tail)
    high = crossing(lambda mean: tail - gamma_q(events + 1, mean), 0.0, top)
    low = crossing(lambda mean: gamma_p(events, mean) - tail, 0.0, top) if events else 0.0
    return Interval(low, high)


def rate_limits(events: int, exposure: float, level: float = 0.05) -> Interval | None:
    """:func:`count_limits` per unit of exposure; None without exposure."""
    if exposure <= 0:
        return None
    low, high = count_limits(events, level)
    return Interval(low / exposure, high / exposure)


def zero_bound(exposure: float, level: float = 0.05) -> float | None:
    """No event in this exposure: the rate is below −ln(level)/exposure (3.0/T at 95 %). None without any."""
    return -math.log(level) / exposure if exposure > 0 else None
