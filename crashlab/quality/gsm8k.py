"""Questions from a local JSONL file in the form of GSM8K: ``question``, and an ``answer`` that ends in ``#### 42``."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import NamedTuple

from crashlab.errors import UnreadableInput
from crashlab.quality.extract import number_of
from crashlab.quality.jsonlines import read_objects
from crashlab.quality.task import NUMBER, Suite, Task

STRICT = r"####\s{0,4}(-?\$?[\d.,]{1,60})"
STOP = ("Question:",)
MAX_TOKENS = 512
_MARK = "####"


class Sample(NamedTuple):
    """A question, its worked answer, and the final number in it."""

    question: str
    answer: str
    final: str


def load_gsm8k(path: str, seed: int, count: int | None, shots: int = 5) -> Suite:
    """``count`` questions (None: all) drawn by ``seed``, with ``shots`` worked examples from the same file.

    The examples are never among the questions. Raises UnreadableInput when no line has the form.
    """
    samples = [found for row in read_objects(path) if (found := _sample(row)) is not None]
    if len(samples) <= shots:
        raise UnreadableInput(
            f"{path} holds {len(samples)} questions in the form of GSM8K; more than {shots} are needed.",
            hint='A line is {"question": "...", "answer": "... #### 42"}.',
        )
    order = list(range(len(samples)))
    random.Random(f"{seed}/gsm8k").shuffle(order)
    examples = [samples[i] for i in order[:shots]]
    chosen = order[shots:] if count is None else order[shots : shots + count]
    intro = "".join(f"Question: {one.question}\nAnswer: {one.answer}\n\n" for one in examples)
    return Suite(
        os.path.basename(path),
        tuple(_task(i, samples[i], intro) for i in chosen),
        STOP,
        MAX_TOKENS,
        shots,
        STRICT,
        (("questions and examples", f"{seed}/gsm8k"),),
        os.path.basename(path),
    )


def looks_like(rows: Sequence[dict[str, object]]) -> bool:
    """Whether the first rows have the form."""
    return bool(rows) and all(_sample(row) is not None for row in rows[:5])


def _sample(row: dict[str, object]) -> Sample | None:
    question, answer = row.get("question"), row.get("answer")
    if not isinstance(question, str) or not isinstance(answer, str) or _MARK not in answer:
        return None
    final = answer.rpartition(_MARK)[2].strip()
    return None if number_of(final) is None else Sample(question.strip(), answer.strip(), final)


def _task(number: int, sample: Sample, intro: str) -> Task:
    prompt = f"{intro}Question: {sample.question}\nAnswer:"
    return Task(f"gsm8k-{number}", "gsm8k", prompt, sample.final, NUMBER, sample.question)
