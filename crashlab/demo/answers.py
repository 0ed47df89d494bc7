"""Answers to known questions, and everything that can be wrong with them: noise, dropped requests, garbage.

The simulated model "knows" the questions of a JSONL file (``question``, ``answer``), as
``crashlab quality --write-tasks`` writes it, and gets a fixed share of them right. Noise is what batching
does to greedy decoding: now and then another answer to the same question.
"""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Mapping
from typing import NamedTuple

from crashlab.soak.words import VOCABULARY

KINDS = ("token0", "loop", "empty", "mojibake", "wrong")
_LONG = 48
_PROSE = 40


class Flaws(NamedTuple):
    """``accuracy``: share of questions answered right, always the same ones. ``noise``: share of requests
    whose answer flips. ``drop``: share of requests that the server hangs up on. ``degrade`` is one of
    :data:`KINDS`, for ``share`` of the requests that have at least ``from_tokens`` prompt tokens while at
    least ``from_batch`` requests are under way."""

    accuracy: float = 1.0
    noise: float = 0.0
    drop: float = 0.0
    degrade: str | None = None
    share: float = 1.0
    from_tokens: int = 0
    from_batch: int = 0


class Planned(NamedTuple):
    """The pieces of an answer, a token each; None: hang up."""

    pieces: tuple[str, ...] | None


class Answers:
    """``known`` maps questions to answers."""

    def __init__(self, known: Mapping[str, str], flaws: Flaws, seed: int | None = None) -> None:
        self._known, self._flaws, self._rng = known, flaws, random.Random(seed)

    def plan(self, prompt: str, tokens: int, running: int) -> Planned:
        """What to answer; ``running`` requests are under way, this one included."""
        flaws, rng = self._flaws, self._rng
        if rng.random() < flaws.drop:
            return Planned(None)
        hit = tokens >= flaws.from_tokens and running >= flaws.from_batch
        if flaws.degrade is not None and hit and rng.random() < flaws.share:
            return Planned(self._degraded(prompt, flaws.degrade))
        return Planned(self._proper(prompt, flipped=rng.random() < flaws.noise))

    def _proper(self, prompt: str, *, flipped: bool) -> tuple[str, ...]:
        question = question_of(prompt)
        answer = self._known.get(question)
        if answer is None:
            return _prose(prompt, self._rng if flipped else None)
        right = zlib.crc32(question.encode("utf-8", "replace")) / 2**32 < self._flaws.accuracy
        return (f" {answer}" if right != flipped else f" {_another(answer)}",)

    def _degraded(self, prompt: str, kind: str) -> tuple[str, ...]:
        if kind == "token0":
            return ("!",) * _LONG
        if kind == "loop":
            return (" and", " so", " on") * (_LONG // 3)
        if kind == "empty":
            return ("",) * _LONG
        if kind == "mojibake":
            return ("\ufffd", "\u00c3\u00a9") * (_LONG // 2)
        known = self._known.get(question_of(prompt))
        return (f" {_another(known or '0')}",)


def question_of(prompt: str) -> str:
    """The last question of a prompt with examples."""
    return prompt.rpartition("Question: ")[2].partition("\nAnswer:")[0].strip()


def load_known(path: str) -> dict[str, str]:
    """Questions and answers of a JSONL file; lines that hold none are passed over."""
    known = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            if isinstance(row, dict) and isinstance(row.get("question"), str):
                known[row["question"].strip()] = str(row.get("answer", ""))
    return known


def _another(answer: str) -> str:
    """A wrong answer that looks like a right one."""
    return str(int(answer) + 1) if answer.lstrip("-").isdigit() else f"{answer}0"


def _prose(prompt: str, dice: random.Random | None) -> tuple[str, ...]:
    """Fixed words for a prompt; ``dice`` change the second half."""
    words = random.Random(zlib.crc32(prompt.encode("utf-8", "replace"))).choices(VOCABULARY, k=_PROSE)
    if dice is not None:
        words[_PROSE // 2 :] = dice.choices(VOCABULARY, k=_PROSE - _PROSE // 2)
    return tuple(f" {word}" for word in words)
