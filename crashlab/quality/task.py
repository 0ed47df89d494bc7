"""A question with its right answer, and a suite of them: what every arm is asked in the same way."""

from __future__ import annotations

import hashlib
import json
from typing import NamedTuple

NUMBER, EXACT, REGEX, NONE = "number", "exact", "regex", "none"
"""How an answer is scored: the last number in it, the whole text, a pattern that must occur, not at all."""


class Task(NamedTuple):
    """``prompt`` is what is sent, whole. ``answer`` is the right number or text, or a regular expression.

    ``level`` groups tasks of like difficulty; ``question`` is the bare question without examples.
    """

    id: str
    level: str
    prompt: str
    answer: str
    scoring: str = NUMBER
    question: str = ""


class Suite(NamedTuple):
    """Tasks that are asked with the same settings. ``strict`` is the pattern (one group) of an answer in
    the form that the examples show, None where there is no such form. ``seeds`` name every random choice.
    """

    name: str
    tasks: tuple[Task, ...]
    stop: tuple[str, ...] = ()
    max_tokens: int = 64
    shots: int = 0
    strict: str | None = None
    seeds: tuple[tuple[str, str], ...] = ()
    source: str | None = None

    @property
    def sha256(self) -> str:
        """Of all prompts and answers in their order: equal digests mean the same questions."""
        digest = hashlib.sha256()
        for task in self.tasks:
            row = json.dumps([task.id, task.prompt, task.answer, task.scoring], ensure_ascii=False)
            digest.update(row.encode("utf-8", "replace") + b"\n")
        return digest.hexdigest()

    def by_id(self) -> dict[str, Task]:
        """The tasks by their id."""
        return {task.id: task for task in self.tasks}
