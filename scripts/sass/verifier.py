"""Asks whether a block learned for one architecture also describes another one."""

from __future__ import annotations

import random
from collections.abc import Generator

from oracle import CONTROL_MASK, NEUTRAL_CONTROL
from words import Answers, clean

from crashlab.sass.decode.model import CATEGORY_BIT, ClassModel, scatter


def ignored_bits(model: ClassModel) -> int:
    """Returns the bits of a word that the class does not look at (control fields excluded)."""
    used = 0xFFF | model.when_mask | model.mask | CONTROL_MASK | 3 << 126 | (15 << 12 if model.guards else 0)
    for slot in model.slots.values():
        used |= slot.mask
    return (1 << 128) - 1 & ~used


def random_word(model: ClassModel, rng: random.Random, number: int = -1, row: int = 0) -> int:
    """Returns a word of the class with random rows and numbers, and the guard predicate off.

    ``row`` is the row to take of group ``number``.
    """
    word = model.opcode | model.when_value | NEUTRAL_CONTROL | (7 << 12 if model.guards else 0)
    for slot in model.slots.values():
        width = sum(segment[1] for segment in slot.segments)
        shift = min(segment[2] for segment in slot.segments)
        word = word & ~slot.mask | scatter(rng.getrandbits(width) << shift, slot.segments)
    names = list(model.slots)
    for at, group in enumerate(model.groups):
        key = row if at == number else rng.choice(list(group.rows))
        word = word & ~(group.mask & (1 << CATEGORY_BIT) - 1) | key & (1 << CATEGORY_BIT) - 1
        for i, name in enumerate(names):
            code = key >> (CATEGORY_BIT + 8 * i) & 255
            slot = model.slots[name]
            if code:
                bits = rng.choice([b for b, c in slot.codes.items() if c >> (CATEGORY_BIT + 8 * i) == code])
                word = word & ~slot.mask | bits
    return word | rng.getrandbits(128) & ignored_bits(model) if rng.random() < 0.5 else word


def describes(
    models: list[ClassModel], samples: list[int], seed: int, count: int = 400
) -> Generator[list[int], Answers, str]:
    """Returns ``yes``, ``no`` (some text differs) or ``absent`` (nvdisasm rejects every word).

    A sample that the models do not know is a difference too; a random word that they do not know is none.
    """
    rng = random.Random(seed)
    real = [w & ~CONTROL_MASK | NEUTRAL_CONTROL for w in samples]
    words = real + [random_word(model, rng) for model in models for _ in range(count)]
    for model in models:  # every row at least a few times
        for number, group in enumerate(model.groups):
            words += [random_word(model, rng, number, row) for row in group.rows for _ in range(3)]
    answers = yield words
    accepted = False
    for at, (word, (pc, text)) in enumerate(zip(words, answers, strict=True)):
        text = clean(text)
        if text is None:
            continue
        accepted = True
        model = next((m for m in models if word & m.when_mask == m.when_value), None)
        found = None if model is None else model.guarded_text(word, pc)
        if found != text and (found is not None or at < len(real)):
            return "no"
    return "yes" if accepted else "absent"
