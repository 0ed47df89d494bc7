"""Holds tables against an nvdisasm release, and two sets of tables against each other."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from oracle import CONTROL_MASK, NEUTRAL_CONTROL, Oracle
from verifier import random_word
from words import clean

from crashlab.sass.decode.model import ClassModel

Models = dict[int, list[ClassModel]]
_BASE = 1 << 40
_CHUNK = 150_000
_SHOWN = 40


def compiled(blocks: dict[int, list[list[str]]]) -> Models:
    """Returns the blocks of a table as classes, by opcode."""
    return {opcode: [ClassModel(block) for block in mine] for opcode, mine in sorted(blocks.items())}


def text_of(models: list[ClassModel], word: int, pc: int) -> str | None:
    """Returns what the classes of an opcode make of a word, or None where they do not know it."""
    model = next((m for m in models if word & m.when_mask == m.when_value), None)
    return None if model is None else model.guarded_text(word, pc)


def variations(models: list[ClassModel], rng: random.Random, count: int) -> Iterator[int]:
    """Yields ``count`` random words of each class, and every row of its groups a few times."""
    for model in models:
        for _ in range(count):
            yield random_word(model, rng)
        for number, group in enumerate(model.groups):
            for row in group.rows:
                for _ in range(3):
                    yield random_word(model, rng, number, row)


class Check(NamedTuple):
    """How a table agrees with nvdisasm; examples are (word, ours, theirs) by opcode."""

    accepted: int
    rejected: int
    wrong: Counter[int]
    unknown: Counter[int]
    examples: dict[int, tuple[int, str | None, str]]


def check(oracle: Oracle, models: Models, samples: dict[int, list[int]], count: int, seed: int) -> Check:
    """Compares real words and ``count`` random ones of each class with what nvdisasm prints."""
    rng = random.Random(seed)
    words = [w & ~CONTROL_MASK | NEUTRAL_CONTROL for mine in samples.values() for w in mine]
    for mine in models.values():
        words += variations(mine, rng, count)
    accepted, wrong, unknown = 0, Counter[int](), Counter[int]()
    examples: dict[int, tuple[int, str | None, str]] = {}
    for at in range(0, len(words), _CHUNK):
        chunk = words[at : at + _CHUNK]
        for number, theirs in enumerate(map(clean, oracle.ask(chunk, _BASE))):
            if theirs is None:
                continue
            accepted += 1
            word = chunk[number]
            ours = text_of(models.get(word & 0xFFF, []), word, _BASE + 16 * number)
            if ours != theirs:
                (unknown if ours is None else wrong)[word & 0xFFF] += 1
                if ours is not None or word & 0xFFF not in examples:
                    examples[word & 0xFFF] = (word, ours, theirs)
    return Check(accepted, len(words) - accepted, wrong, unknown, examples)


def print_check(result: Check) -> None:
    """Prints one family's result, with an example of each opcode that differs."""
    print(
        f"  {result.accepted} words: {result.wrong.total()} wrong, {result.unknown.total()} unknown; "
        f"{result.rejected} that nvdisasm rejects",
        flush=True,
    )
    for opcode in sorted(result.examples, key=lambda opcode: (not result.wrong[opcode], opcode))[:_SHOWN]:
        word, ours, theirs = result.examples[opcode]
        counts = f"{result.wrong[opcode]} wrong, {result.unknown[opcode]} unknown"
        print(f"    {opcode:03x}: {counts}: {word:032x} | {ours} | {theirs}", flush=True)


def compare(one: Models, two: Models, count: int, seed: int) -> list[str]:
    """Returns how two tables differ, a line an opcode; empty where they say the same of every word tried."""
    rng = random.Random(seed)
    lines = []
    for opcode in sorted({*one, *two}):
        mine, theirs = one.get(opcode, []), two.get(opcode, [])
        if not mine or not theirs:
            lines.append(
                f"{opcode:03x} {(mine or theirs)[0].name}: only in the {'first' if mine else 'second'}"
            )
            continue
        seen: Counter[str] = Counter()
        for word in [*variations(mine, rng, count), *variations(theirs, rng, count)]:
            a, b = text_of(mine, word, _BASE), text_of(theirs, word, _BASE)
            if a != b:
                seen[
                    "only the second knows"
                    if a is None
                    else "only the first knows"
                    if b is None
                    else "differ"
                ] += 1
        if seen:
            lines.append(
                f"{opcode:03x} {mine[0].name}: " + ", ".join(f"{n} {what}" for what, n in seen.items())
            )
    return lines
