"""Stopping early: Wald's sequential probability ratio test for a Poisson rate.

A. Wald, Annals of Mathematical Statistics 16 (1945). Looking after every event and every hour is allowed
here, and only here: the exact tests of :mod:`crashlab.stats.rates` assume an end chosen beforehand.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from crashlab.errors import UsageError

CONTINUE, LOWER, UNCHANGED = "continue", "lower-rate", "unchanged"


class Sequential(NamedTuple):
    """``log_ratio``: evidence for ``rate1`` against ``rate0``; the test ends at ``accept`` or ``reject``.

    ``decision``: ``continue``, ``lower-rate`` (rate1 accepted) or ``unchanged`` (rate0 accepted).
    ``clean_left``: further clean exposure after which rate1 would be accepted; None once decided.
    """

    log_ratio: float
    accept: float
    reject: float
    decision: str
    clean_left: float | None


def sprt(
    events: int, exposure: float, rate0: float, rate1: float, alpha: float = 0.05, beta: float = 0.05
) -> Sequential:
    """Is the rate still ``rate0``, or down to ``rate1`` (0 < rate1 < rate0)?

    ``alpha``: chance to call an unchanged rate lower; ``beta``: to call a lowered one unchanged; both hold
    approximately and conservatively. ``rate0`` counts as known: with a baseline of few events it is not.
    UsageError when the rates are out of order.
    """
    if not 0 < rate1 < rate0:
        raise UsageError("the lower rate must lie between 0 and the unchanged rate")
    ratio = events * math.log(rate1 / rate0) + (rate0 - rate1) * exposure
    reject, accept = math.log((1 - beta) / alpha), math.log(beta / (1 - alpha))
    decision = LOWER if ratio >= reject else UNCHANGED if ratio <= accept else CONTINUE
    left = (reject - ratio) / (rate0 - rate1) if decision == CONTINUE else None
    return Sequential(ratio, accept, reject, decision, left)
