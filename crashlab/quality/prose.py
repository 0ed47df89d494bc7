"""Beginnings of ordinary texts to be continued greedily: nothing to score, much to see. Garbage that a
short number hides (loops, another script, mojibake) shows in sixty tokens of prose."""

from __future__ import annotations

from crashlab.quality.task import NONE, Suite, Task

_BEGINNINGS = (
    "The quick brown fox jumps over the lazy dog. The quick brown fox",
    "Once upon a time, in a small village by the sea, there lived",
    "The capital of France is Paris. The capital of Italy is",
    "Dear customer, thank you for your letter of last week. We",
    "Water boils at one hundred degrees. Ice melts at",
    "The days of the week are Monday, Tuesday,",
    "def add(a, b):\n    return a + b\n\ndef multiply(a, b):\n",
    "Count from one to twenty: one, two, three,",
    "In the morning the sun rises in the east, and in the evening",
    "Ingredients: flour, eggs, milk and sugar. First, mix the flour with",
    "The train leaves at nine and arrives at noon. The journey takes",
    "A triangle has three sides, a square has four sides, and a pentagon has",
)
TOKENS = 64


def build_prose() -> Suite:
    """The suite; the same each time."""
    tasks = (
        Task(f"prose-{number}", "prose", text, "", NONE, text) for number, text in enumerate(_BEGINNINGS)
    )
    return Suite("prose", tuple(tasks), (), TOKENS)
