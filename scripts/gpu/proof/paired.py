"""How much slower is one arm than another? Blocks in turns, ratios of neighbours, and an interval over rounds.

A block is some tens of milliseconds of one process; the blocks of both arms alternate, so that clocks, heat
and other load weigh on both alike. A round is a fresh process for each arm: where its memory and its threads
lie makes it faster or slower by a constant that no number of blocks averages out. So the rounds are what is
counted: each gives the median of its log ratios, and the interval is Wilcoxon's over these.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple


class Ratio(NamedTuple):
    """``value``: the Hodges-Lehmann estimate, with its 95 % limits; infinite where ``rounds`` are too few (5)."""

    value: float
    low: float
    high: float
    rounds: int
    pairs: int

    @property
    def half(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2


def round_log_ratio(base: Sequence[float], other: Sequence[float]) -> float:
    """The median of ``log(other / base)`` over neighbouring blocks of one round. Times are above zero."""
    return statistics.median(math.log(b / a) for a, b in zip(base, other, strict=True))


def ratio(rounds: Sequence[tuple[Sequence[float], Sequence[float]]], level: float = 0.95) -> Ratio | None:
    """Over rounds of (blocks of the base, blocks of the other arm); None without any pair."""
    logs = [round_log_ratio(base, other) for base, other in rounds if base]
    if not logs:
        return None
    low, high = signed_rank_limits(logs, level)
    pairs = sum(len(base) for base, _ in rounds)
    return Ratio(math.exp(middle(logs)), math.exp(low), math.exp(high), len(logs), pairs)


def middle(values: Sequence[float]) -> float:
    """The median of all means of two (Hodges and Lehmann 1963): as good as the mean for well-behaved values,
    and unmoved by a few wild ones."""
    return statistics.median(walsh(values))


def walsh(values: Sequence[float]) -> list[float]:
    """Means of every two values, each with itself included, in order."""
    return sorted((a + b) / 2 for i, a in enumerate(values) for b in values[i:])


def signed_rank_limits(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Limits for the centre of symmetry by inverting Wilcoxon's signed-rank test, exactly."""
    averages = walsh(values)
    tails = signed_rank_tails(len(values))
    cut = sum(tail <= (1 - level) / 2 for tail in tails[: len(averages) // 2])
    if cut == 0:
        return -math.inf, math.inf
    return averages[cut - 1], averages[-cut]


def signed_rank_tails(count: int) -> list[float]:
    """P(W <= w) for w = 0, 1, … of the signed-rank sum of ``count`` values."""
    ways = [1]
    for rank in range(1, count + 1):
        longer = ways + [0] * rank
        for w, many in enumerate(ways):
            longer[w + rank] += many
        ways = longer
    total, out = 0, []
    for many in ways:
        total += many
        out.append(total / 2**count)
    return out
