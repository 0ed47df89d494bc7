"""Time to an event when some runs end without it: the Kaplan-Meier estimate."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import NormalDist
from typing import NamedTuple


class Life(NamedTuple):
    """One run: ``time`` > 0 until its event, or until it ended without one (``event`` False, censored)."""

    time: float
    event: bool


class Step(NamedTuple):
    """From ``time`` on this share is estimated to be without the event; limits None where not defined."""

    time: float
    survival: float
    low: float | None
    high: float | None
    at_risk: int


def kaplan_meier(lives: Iterable[Life], level: float = 0.05) -> tuple[Step, ...]:
    """One step for each distinct event time (Kaplan and Meier, JASA 53, 1958).

    Pointwise limits by Greenwood's formula on the log(−log) scale (Kalbfleisch and Prentice, 1980), which
    stay within 0 and 1; they are approximate. A run censored at an event time was still at risk then.
    """
    ordered = sorted(lives, key=lambda life: (life.time, not life.event))
    z = NormalDist().inv_cdf(1 - level / 2)
    out: list[Step] = []
    survival, greenwood = 1.0, 0.0
    i, at_risk = 0, len(ordered)
    while i < len(ordered):
        time, deaths, leaving = ordered[i].time, 0, 0
        while i < len(ordered) and ordered[i].time == time:
            deaths += ordered[i].event
            leaving += 1
            i += 1
        if deaths:
            survival *= (at_risk - deaths) / at_risk
            greenwood += deaths / (at_risk * (at_risk - deaths)) if at_risk > deaths else math.inf
            out.append(Step(time, survival, *_limits(survival, greenwood, z), at_risk))
        at_risk -= leaving
    return tuple(out)


def _limits(survival: float, greenwood: float, z: float) -> tuple[float | None, float | None]:
    if not 0 < survival < 1:
        return None, None
    half = z * math.sqrt(greenwood) / abs(math.log(survival))
    return survival ** _exp(half), survival ** _exp(-half)


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))
