"""Everything one arm was asked and answered, as it goes from the interview to the comparison."""

from __future__ import annotations

from typing import NamedTuple

from crashlab.quality.answered import Answered
from crashlab.quality.logprobs import Likelihoods
from crashlab.quality.onset import Onset


class Cell(NamedTuple):
    """The easy questions again at ``at`` prompt tokens or requests at a time: ``right`` of ``of`` that came,
    ``odd`` of them degenerate. A question that was asked several times counts once, by its majority."""

    dimension: str
    at: int
    right: int
    of: int
    odd: int = 0

    @property
    def share(self) -> float | None:
        """Right answers among those that came."""
        return self.right / self.of if self.of else None


class Talk(NamedTuple):
    """``passes`` and ``prose`` hold one row of answers each time it was asked, ``likelihoods`` what it told
    of fixed texts. ``corrupted``: requests with NaN logits by the server's own count meanwhile.
    ``problem``: why the interview is not complete."""

    arm: str
    model: str | None = None
    context: int | None = None
    tokens_a_word: float | None = None
    token0: str | None = None
    passes: tuple[tuple[Answered, ...], ...] = ()
    prose: tuple[tuple[Answered, ...], ...] = ()
    likelihoods: tuple[Likelihoods | None, ...] = ()
    cells: tuple[Cell, ...] = ()
    onsets: tuple[Onset, ...] = ()
    corrupted: float | None = None
    seconds: float | None = None
    problem: str | None = None
    notes: tuple[str, ...] = ()
