"""How long a soak goes on, and what its command-line spellings mean."""

from __future__ import annotations

import re
from typing import NamedTuple

from crashlab.errors import UsageError
from crashlab.postmortem.words import counted
from crashlab.soak.exposure import Exposure, duration

_PART = re.compile(r"(\d+(?:\.\d+)?)(d|h|m|s|)")
_FACTOR = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "": 1.0}
_COUNT = re.compile(r"(\d+(?:\.\d+)?)([kKmM]?)")


class Budget(NamedTuple):
    """None: no limit of this kind. Without any limit a soak goes on until something is found.

    ``requests`` that failed do not count: a dead server would use up the budget in no time.
    """

    seconds: float | None = None
    steps: int | None = None
    requests: int | None = None

    def spent(self, exposure: Exposure) -> str | None:
        """Which limit is reached, in words, or None."""
        if self.seconds is not None and exposure.seconds >= self.seconds:
            return f"{duration(self.seconds)} of load"
        if self.steps is not None and (exposure.engine_steps or 0) >= self.steps:
            return f"{self.steps:,} engine steps"
        if self.requests is not None and exposure.answered >= self.requests:
            return counted(self.requests, "request")
        return None

    def left(self, used: Exposure) -> Budget:
        """What remains after ``used``."""
        return Budget(
            None if self.seconds is None else max(0.0, self.seconds - used.seconds),
            None if self.steps is None else max(0, self.steps - (used.engine_steps or 0)),
            None if self.requests is None else max(0, self.requests - used.answered),
        )


def parse_duration(text: str) -> float:
    """Seconds of ``50m``, ``1h30m``, ``2d``, ``90``. Raises UsageError."""
    at, total = 0, 0.0
    for found in _PART.finditer(text):
        if found.start() != at:
            break
        total += float(found.group(1)) * _FACTOR[found.group(2)]
        at = found.end()
    if not text or at != len(text):
        raise UsageError(f"{text!r} is no duration.", hint="Write it as 90s, 50m, 24h or 1h30m.")
    return total


def parse_count(text: str) -> int:
    """``5000``, ``20k``, ``2M``. Raises UsageError."""
    found = _COUNT.fullmatch(text)
    if found is None:
        raise UsageError(f"{text!r} is no count.", hint="Write it as 5000, 20k or 2M.")
    return int(float(found.group(1)) * {"": 1, "k": 1000, "m": 1_000_000}[found.group(2).lower()])


def parse_range(text: str) -> tuple[int, int]:
    """``256``, ``64:1024``, ``8k:80k``: from-to, both included. Raises UsageError."""
    low, colon, high = text.partition(":")
    pair = parse_count(low), parse_count(high if colon else low)
    if pair[0] < 1 or pair[1] < pair[0]:
        raise UsageError(f"{text!r} is no range of token counts.", hint="Write it as 64:1024.")
    return pair
