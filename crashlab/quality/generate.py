"""The built-in suite: seeded sums and word problems in several difficulties, so that small models score in
the middle and large ones near the top. The same seed, count and levels give the same questions for ever."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from crashlab.errors import UsageError
from crashlab.quality.arithmetic import Problem, chains, digits, large, sums, tables
from crashlab.quality.stories import long_stories, stories
from crashlab.quality.task import NUMBER, Suite, Task

LEVELS: dict[str, Callable[[random.Random], Problem]] = {
    "digits": digits,
    "sums": sums,
    "tables": tables,
    "stories": stories,
    "chains": chains,
    "long-stories": long_stories,
    "large": large,
}
STRICT = r"^\s*(?:####\s*)?(-?\d[\d,]*(?:\.\d+)?)\s*\.?\s*(?:\n|$)"
"""The form that the examples show: the number alone on the first line."""
STOP = ("\n\n", "Question:")
MAX_TOKENS = 48
_TRIES = 40


def render(problem: Problem) -> str:
    """A question with its answer, as the examples show it."""
    return f"Question: {problem.question}\nAnswer: {problem.answer}\n\n"


def ask_of(question: str) -> str:
    """A question without its answer."""
    return f"Question: {question}\nAnswer:"


def build_suite(seed: int, count: int, levels: Sequence[str] = (), shots: int = 3) -> Suite:
    """``count`` different questions, dealt round the levels; ``shots`` examples before each.

    A level that has no new questions left is passed over, so a suite can be shorter than ``count``.
    Raises UsageError for a level that does not exist.
    """
    names = tuple(levels) or tuple(LEVELS)
    for name in names:
        if name not in LEVELS:
            raise UsageError(f"There is no level {name!r}.", hint=f"Levels: {', '.join(LEVELS)}.")
    makers = {name: random.Random(f"{seed}/tasks/{name}") for name in names}
    intro = _examples(seed, names, shots)
    seen: set[str] = set()
    tasks: list[Task] = []
    while len(tasks) < count and makers:
        for name in list(makers):
            problem = _fresh(makers[name], name, seen)
            if problem is None:
                del makers[name]
                continue
            seen.add(problem.question)
            number = len(tasks)
            prompt = intro + ask_of(problem.question)
            tasks.append(
                Task(f"{name}-{number}", name, prompt, str(problem.answer), NUMBER, problem.question)
            )
            if len(tasks) >= count:
                break
    seeds = (("questions", f"{seed}/tasks/LEVEL"), ("examples", f"{seed}/shots"))
    return Suite("generated", tuple(tasks), STOP, MAX_TOKENS, shots, STRICT, seeds)


def _examples(seed: int, names: Sequence[str], shots: int) -> str:
    rng = random.Random(f"{seed}/shots")
    return "".join(render(LEVELS[names[i % len(names)]](rng)) for i in range(shots))


def _fresh(rng: random.Random, name: str, seen: set[str]) -> Problem | None:
    for _ in range(_TRIES):
        problem = LEVELS[name](rng)
        if problem.question not in seen:
            return problem
    return None
