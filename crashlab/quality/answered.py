"""One question as one arm answered it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from crashlab.quality.scoring import CORRECT, ERROR, INVALID, WRONG
from crashlab.stats.proportions import clopper_pearson


class Answered(NamedTuple):
    """``outcome``: correct, wrong, invalid, error; None if it is not scored. ``text`` up to the first stop
    text; ``kinds`` what it looks like (:mod:`degenerate`). ``error`` is the client's class with its words.
    """

    task: str
    level: str
    outcome: str | None
    text: str = ""
    strict: bool | None = None
    kinds: tuple[str, ...] = ()
    error: str | None = None
    detail: str | None = None
    finish: str | None = None
    tokens: int = 0
    prompt_tokens: int | None = None
    seconds: float | None = None

    @property
    def right(self) -> bool:
        """Whether it counts as right."""
        return self.outcome == CORRECT


class Counts(NamedTuple):
    """The four counts of a pass. ``strict``: right in the exact form; None where there is no such form."""

    asked: int = 0
    correct: int = 0
    wrong: int = 0
    invalid: int = 0
    error: int = 0
    strict: int | None = None

    @property
    def answered(self) -> int:
        """Those that came without an error."""
        return self.asked - self.error

    @property
    def share(self) -> float | None:
        """Right answers among those that came; None if none came."""
        return self.correct / self.answered if self.answered else None


def count(answers: Iterable[Answered]) -> Counts:
    """Count the scored answers and the errors."""
    rows = [one for one in answers if one.outcome is not None]
    tally = {name: sum(row.outcome == name for row in rows) for name in (CORRECT, WRONG, INVALID, ERROR)}
    in_form = [row.strict for row in rows if row.strict is not None]
    return Counts(
        len(rows),
        tally[CORRECT],
        tally[WRONG],
        tally[INVALID],
        tally[ERROR],
        sum(in_form) if in_form else None,
    )


class Share(NamedTuple):
    """``hits`` of ``of`` with exact 95 % limits."""

    hits: int
    of: int
    low: float
    high: float


def share(hits: int, of: int) -> Share:
    """With Clopper-Pearson limits."""
    limits = clopper_pearson(hits, of)
    return Share(hits, of, limits.low, limits.high)
