"""The same easy questions again behind longer prompts and in larger batches: does garbage begin somewhere?"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from crashlab.quality.answered import Answered
from crashlab.quality.scoring import ERROR
from crashlab.quality.task import Suite, Task
from crashlab.soak.words import VOCABULARY

LENGTHS = (256, 1024, 4096, 16384, 65536)
CONCURRENCIES = (1, 4, 16, 64)
QUESTIONS = 32
ROUNDS = 3
"""At each concurrency so many batches, so that most of them are full."""
FINE = 0.75
"""A step that the first arm does not reach this share on tells nothing of the second one."""
FALL = 0.25
_MARGIN = 0.9
_WORD_TOKENS = 1.4


def lengths_within(context: int | None, most: int, answer: int) -> tuple[int, ...]:
    """Prompt lengths in tokens that fit the context beside the answer; the longest fitting one as well."""
    room = most if context is None else min(most, int((context - answer) * _MARGIN))
    steps = [length for length in LENGTHS if length <= room]
    if steps and room >= 1.5 * steps[-1]:
        steps.append(room)
    return tuple(steps)


def easy(suite: Suite, passes: Sequence[Sequence[Answered]], count: int = QUESTIONS) -> Suite:
    """The first questions that were right in every pass: only those can tell of garbage."""
    right = None
    for answers in passes:
        ids = {one.task for one in answers if one.right}
        right = ids if right is None else right & ids
    tasks = [task for task in suite.tasks if task.id in (right or ())]
    return suite._replace(name="ladder", tasks=tuple(tasks[:count]))


def padded(suite: Suite, tokens: int, seed: int, tokens_a_word: float | None) -> Suite:
    """Each prompt with other words before it, so that it has about ``tokens`` tokens."""
    ratio = tokens_a_word or _WORD_TOKENS
    return suite._replace(
        tasks=tuple(_pad(task, tokens, random.Random(f"{seed}/filler/{task.id}/{tokens}"), ratio)
                    for task in suite.tasks)
    )  # fmt: skip


def _pad(task: Task, tokens: int, rng: random.Random, ratio: float) -> Task:
    have = len(task.prompt.split()) * ratio
    count = max(0, int((tokens - have) / ratio))
    if not count:
        return task
    filler = " ".join(rng.choices(VOCABULARY, k=count))
    return task._replace(prompt=f"{filler}.\n\n{task.prompt}")


class Came(NamedTuple):
    """Of ``of`` questions that were answered, ``right`` right and ``odd`` degenerate, by majority."""

    right: int
    of: int
    odd: int


def came(answers: Sequence[Answered]) -> Came:
    """Count each question once: copies of one question are no independent evidence. Errors say nothing."""
    by_task: dict[str, list[Answered]] = {}
    for one in answers:
        if one.outcome not in (None, ERROR):
            by_task.setdefault(one.task, []).append(one)
    rows = by_task.values()
    return Came(
        sum(2 * sum(one.right for one in copies) > len(copies) for copies in rows),
        len(rows),
        sum(2 * sum(bool(one.kinds) for one in copies) > len(copies) for copies in rows),
    )
