"""Two limits between which an unknown value lies."""

from __future__ import annotations

from typing import NamedTuple


class Interval(NamedTuple):
    """Confidence limits in the unit of what they bound. ``high`` of a rate or ratio may be ``math.inf``."""

    low: float
    high: float
