"""Word problems with exact answers: one step and two steps."""

from __future__ import annotations

import random

from crashlab.quality.arithmetic import Problem

_NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gwen", "Hugo", "Iris", "Jon")
_THINGS = ("apples", "books", "coins", "cards", "keys", "lamps", "pens", "shells", "stamps", "stones")
_BOXES = ("bags", "boxes", "crates", "jars", "shelves")


def stories(rng: random.Random) -> Problem:
    """One step: more, fewer, or so many in each."""
    name, thing, box = rng.choice(_NAMES), rng.choice(_THINGS), rng.choice(_BOXES)
    kind = rng.randrange(3)
    a, b = rng.randint(2, 20), rng.randint(2, 12)
    if kind == 0:
        return Problem(f"{name} has {a} {thing} and gets {b} more. How many {thing} does {name} have?", a + b)
    if kind == 1:
        a = max(a, b + 1)
        return Problem(f"{name} has {a} {thing} and loses {b}. How many {thing} are left?", a - b)
    a = rng.randint(2, 9)
    return Problem(f"There are {a} {box} with {b} {thing} in each. How many {thing} are there?", a * b)


def long_stories(rng: random.Random) -> Problem:
    """Two steps, the second of which needs the result of the first."""
    name, other = rng.sample(_NAMES, 2)
    thing, box = rng.choice(_THINGS), rng.choice(_BOXES)
    a, b = rng.randint(2, 9), rng.randint(2, 9)
    if rng.random() < 0.5:
        c = rng.randint(1, a * b - 1)
        return Problem(
            f"{name} fills {a} {box} with {b} {thing} each and gives {c} {thing} to {other}. "
            f"How many {thing} does {name} still have?",
            a * b - c,
        )
    start, c = rng.randint(5, 30), rng.randint(2, 9)
    return Problem(
        f"{name} has {start} {thing}. {other} brings {a} {box} with {c} {thing} each. "
        f"How many {thing} are there together?",
        start + a * c,
    )
