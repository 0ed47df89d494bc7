"""Greedy canaries: fixed prompts at temperature 0, asked at the beginning and again and again.

Batching alone changes some greedy answers (the order of floating-point sums depends on the batch), so
the difference between two askings at the beginning is measured first, and later differences are held
against it. A random-weight model is no problem: the server is compared with its own beginning.
"""

from __future__ import annotations

from typing import NamedTuple

from crashlab.soak.ask import COMPLETIONS, Ask
from crashlab.soak.garbage import EMPTY, ONE_TOKEN, look_at

LANE = -1
"""Lane number of canaries in the request log."""
PROMPTS = (
    "Count from one to twenty: one, two, three,",
    "The quick brown fox jumps over the lazy dog. The quick brown fox",
    "List the days of the week: Monday, Tuesday,",
    "Water boils at a temperature of",
)
_TOKENS = 32


class Round(NamedTuple):
    """One asking of all prompts: agreement with the first answers, 0 to 1 each, None: no answer."""

    number: int
    agreement: tuple[float | None, ...]
    collapsed: tuple[int, ...]

    @property
    def worst(self) -> float | None:
        """The lowest agreement."""
        return min((one for one in self.agreement if one is not None), default=None)


def canary_asks(number: int, *, temperature: float = 0.0) -> list[Ask]:
    """The requests of one round; their numbers tell round and prompt."""
    return [
        Ask(LANE, number * len(PROMPTS) + i, "canary", COMPLETIONS, (text,), _TOKENS, temperature, True)
        for i, text in enumerate(PROMPTS)
    ]


class Canaries:
    """Holds the first answers and compares. ``noise`` is the lowest agreement at the beginning."""

    def __init__(self) -> None:
        self.rounds: list[Round] = []
        self.noise: float | None = None
        self._first: list[str] | None = None
        self._normal: list[bool] = []
        self._bad_rounds = 0

    def see(self, number: int, answers: list[str | None]) -> str | None:
        """Take a round's answers (None: the request failed); why they are garbage, or None."""
        if self._first is None:
            if any(answer is None for answer in answers):
                return None
            self._first = [answer or "" for answer in answers]
            self._normal = [not _collapsed(answer) for answer in self._first]
            return None
        agreement = tuple(
            None if now is None else common_prefix(first, now)
            for first, now in zip(self._first, answers, strict=True)
        )
        collapsed = tuple(
            i for i, now in enumerate(answers) if now is not None and self._normal[i] and _collapsed(now)
        )
        result = Round(number, agreement, collapsed)
        del self.rounds[:-64]
        self.rounds.append(result)
        if self.noise is None:
            self.noise = result.worst
            return None
        return self._judge(result)

    def words(self) -> str | None:
        """What the canaries tell, with the noise beside it."""
        if self.noise is None or len(self.rounds) < 2:
            return None
        worst = [r.worst for r in self.rounds[1:] if r.worst is not None]
        if not worst:
            return None
        return (
            f"greedy canaries: the last round agreed with the first answers to {worst[-1]:.0%}, "
            f"at the beginning two rounds agreed to {self.noise:.0%} (worst prompt each)"
        )

    def _judge(self, result: Round) -> str | None:
        known = [one for one in result.agreement if one is not None]
        if len(result.collapsed) >= max(2, len(PROMPTS) // 2):
            return (
                f"{len(result.collapsed)} of {len(PROMPTS)} greedy canaries collapsed to one token or nothing"
            )
        lost = bool(known) and len(known) == len(PROMPTS) and max(known) < 0.1
        self._bad_rounds = self._bad_rounds + 1 if lost and (self.noise or 0.0) >= 0.5 else 0
        if self._bad_rounds >= 2:
            return "no greedy canary agrees any more with its first answer, in two rounds"
        return None


def common_prefix(one: str, other: str) -> float:
    """The share of the longer text that both begin with; 1.0 for two empty ones."""
    longer = max(len(one), len(other))
    if not longer:
        return 1.0
    same = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        same += 1
    return same / longer


def _collapsed(text: str) -> bool:
    kinds = look_at(text, _TOKENS).kinds
    return ONE_TOKEN in kinds or EMPTY in kinds
