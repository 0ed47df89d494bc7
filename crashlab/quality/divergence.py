"""Where two greedy answers to the same prompt part: the earliest trace of other numbers underneath."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import NamedTuple

from crashlab.quality.answered import Answered
from crashlab.quality.scoring import ERROR

_EXAMPLES = 3
_AROUND = 60


class Said(NamedTuple):
    """A piece of an answer. Its own name in reports: what models say is taken out of shared ones by it."""

    text: str


class Split(NamedTuple):
    """One prompt: both answers agree up to character ``at`` (word ``word``), then go on as shown."""

    task: str
    at: int
    word: int
    first: Said
    second: Said


class Divergence(NamedTuple):
    """``identical`` of ``prompts`` answers are the same; ``median`` character of the first difference among
    the others (None: there are none). ``splits`` are the earliest ones."""

    prompts: int
    identical: int
    median: float | None = None
    splits: tuple[Split, ...] = ()


def first_difference(one: str, other: str) -> int | None:
    """The position of the first character that differs; None if the texts are equal."""
    if one == other:
        return None
    for at, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return at
    return min(len(one), len(other))


def diverge(first: Iterable[Answered], second: Iterable[Answered]) -> Divergence:
    """Compare answers to the same tasks; those with an error in either arm are left out."""
    others = {one.task: one for one in second if one.outcome != ERROR}
    splits: list[Split] = []
    prompts = 0
    for one in first:
        other = others.get(one.task)
        if one.outcome == ERROR or other is None:
            continue
        prompts += 1
        at = first_difference(one.text, other.text)
        if at is not None:
            near = slice(max(0, at - _AROUND // 2), at + _AROUND)
            word = len(one.text[:at].split())
            splits.append(Split(one.task, at, word, Said(one.text[near]), Said(other.text[near])))
    splits.sort(key=lambda split: (split.at, split.task))
    return Divergence(
        prompts,
        prompts - len(splits),
        statistics.median(split.at for split in splits) if splits else None,
        tuple(splits[:_EXAMPLES]),
    )
