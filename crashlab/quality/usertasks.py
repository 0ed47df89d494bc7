"""The user's own questions, from JSONL or TOML. The form is described in docs/how-to/quality.md."""

from __future__ import annotations

import os
from typing import Any

from crashlab.errors import CrashlabError, UnreadableInput
from crashlab.inputfile import parse_toml
from crashlab.quality.extract import number_of
from crashlab.quality.gsm8k import load_gsm8k, looks_like
from crashlab.quality.jsonlines import read_objects, read_text
from crashlab.quality.task import EXACT, NONE, NUMBER, REGEX, Suite, Task
from crashlab.rundir.lines import finite
from crashlab.signatures.patterns import RULES, exact

_MAX_TOKENS = 256


def load_tasks(path: str, seed: int, count: int | None, shots: int = 5) -> Suite:
    """A GSM8K-form JSONL, a JSONL of tasks, or a TOML file with ``[[task]]`` tables.

    Raises UnreadableInput when the file holds something else, naming the task.
    """
    if path.endswith(".toml"):
        document = _toml(path)
        rows = document.get("task")
        options = {k: v for k, v in document.items() if k != "task"}
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise UnreadableInput(f"{path} holds no [[task]] tables.")
    else:
        rows, options = read_objects(path), {}
        if looks_like(rows):
            return load_gsm8k(path, seed, count, shots)
    tasks = tuple(_task(path, number, row) for number, row in enumerate(rows[:count]))
    if not tasks:
        raise UnreadableInput(f"{path} holds no tasks.")
    if len({task.id for task in tasks}) < len(tasks):
        raise UnreadableInput(f"Two tasks of {path} have the same id.")
    stop = options.get("stop", [])
    if isinstance(stop, str):
        stop = [stop]
    if not isinstance(stop, list) or not all(isinstance(one, str) and one for one in stop):
        raise UnreadableInput(f"{path}: stop must be a text or a list of texts.")
    most = options.get("max_tokens", _MAX_TOKENS)
    if not isinstance(most, int) or isinstance(most, bool) or not 0 < most <= 100_000:
        raise UnreadableInput(f"{path}: max_tokens must be a positive number.")
    name = os.path.basename(path)
    return Suite(name, tasks, tuple(stop), most, source=name)


def _task(path: str, number: int, row: dict[str, Any]) -> Task:
    prompt = row.get("prompt")
    where = f"task {number + 1} of {path}"
    if not isinstance(prompt, str) or not prompt.strip():
        raise UnreadableInput(f"The {where} has no prompt.")
    found = [(kind, row[name]) for name, kind in _FIELDS if name in row]
    if len(found) > 1:
        raise UnreadableInput(f"The {where} has more than one of number, exact and regex.")
    kind, answer = found[0] if found else (NONE, "")
    if finite(answer) is not None:
        answer = str(answer)
    if not isinstance(answer, str):
        raise UnreadableInput(f"The answer of the {where} is no text.")
    _check(where, kind, answer)
    name, level = row.get("id"), row.get("level")
    return Task(
        str(name)[:80] if isinstance(name, str) or finite(name) is not None else f"task-{number}",
        level[:40] if isinstance(level, str) and level else "tasks",
        prompt,
        answer,
        kind,
        prompt[-400:],
    )


_FIELDS = (("number", NUMBER), ("exact", EXACT), ("regex", REGEX))


def _check(where: str, kind: str, answer: str) -> None:
    if kind == NUMBER and number_of(answer) is None:
        raise UnreadableInput(f"The answer of the {where} is no number: {answer[:60]!r}.")
    if kind == EXACT and not answer.strip():
        raise UnreadableInput(f"The answer of the {where} is empty.")
    if kind == REGEX:
        try:
            exact(answer)
        except CrashlabError as error:
            raise UnreadableInput(
                f"The pattern of the {where} cannot be used: {error}",
                hint=RULES,
            ) from error


def _toml(path: str) -> dict[str, Any]:
    try:
        return parse_toml(read_text(path))
    except ValueError as error:
        raise UnreadableInput(f"{path} is no TOML: {str(error)[:200]}.") from error
