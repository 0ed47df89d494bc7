"""Sums with exact answers, from one digit to four: a level a function, all choices from the given generator."""

from __future__ import annotations

import random
from typing import NamedTuple


class Problem(NamedTuple):
    """A bare question and the number that answers it."""

    question: str
    answer: int


def digits(rng: random.Random) -> Problem:
    """One digit and one digit, added or taken away; never below zero."""
    return _two(rng, 0, 9)


def sums(rng: random.Random) -> Problem:
    """Two digits and two digits."""
    return _two(rng, 10, 99)


def large(rng: random.Random) -> Problem:
    """Four digits and four digits."""
    return _two(rng, 1000, 9999)


def tables(rng: random.Random) -> Problem:
    """The multiplication table up to twelve."""
    a, b = rng.randint(2, 12), rng.randint(2, 12)
    return Problem(f"What is {a} * {b}?", a * b)


def chains(rng: random.Random) -> Problem:
    """Three numbers and two signs; no step falls below zero."""
    a, b = rng.randint(10, 60), rng.randint(2, 40)
    c = rng.randint(1, min(30, a + b))
    return Problem(f"What is {a} + {b} - {c}?", a + b - c)


def _two(rng: random.Random, low: int, high: int) -> Problem:
    a, b = rng.randint(low, high), rng.randint(low, high)
    if rng.random() < 0.5:
        return Problem(f"What is {a} + {b}?", a + b)
    a, b = max(a, b), min(a, b)
    return Problem(f"What is {a} - {b}?", a - b)
