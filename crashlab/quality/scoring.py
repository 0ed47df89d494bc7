"""Right, wrong, invalid or error: the four ends of a question. An error is never a wrong answer."""

from __future__ import annotations

from typing import NamedTuple

from crashlab.quality import extract
from crashlab.quality.task import EXACT, NONE, REGEX, Task
from crashlab.signatures.patterns import exact

CORRECT, WRONG, INVALID, ERROR = "correct", "wrong", "invalid", "error"
OUTCOMES = (CORRECT, WRONG, INVALID, ERROR)


class Score(NamedTuple):
    """``strict``: right in the form that the examples show; None where no such form is defined."""

    outcome: str | None
    strict: bool | None = None


def cut(text: str, stop: tuple[str, ...]) -> str:
    """The answer up to the first stop text: not every server heeds ``stop``."""
    ends = [at for one in stop if (at := text.find(one)) >= 0]
    return text[: min(ends)] if ends else text


def score(task: Task, text: str, *, strict: str | None = None, stop: tuple[str, ...] = ()) -> Score:
    """Score an answer that came without an error. ``outcome`` is None for a task that is not scored."""
    text = cut(text, stop)
    if task.scoring == NONE:
        return Score(None)
    if task.scoring == EXACT:
        found = " ".join(text.split())
        if not found:
            return Score(INVALID)
        return Score(CORRECT if found == " ".join(task.answer.split()) else WRONG)
    if task.scoring == REGEX:
        if not text.strip():
            return Score(INVALID)
        return Score(CORRECT if exact(task.answer).search(text) else WRONG)
    wanted, given = extract.number_of(task.answer), extract.flexible(text)
    in_form = None if strict is None else extract.strict(text, strict) == wanted is not None
    if given is None:
        return Score(INVALID, in_form)
    return Score(CORRECT if given == wanted else WRONG, in_form)
