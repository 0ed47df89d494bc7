"""Instruction lists for tests: ``pc  text`` lines, or texts alone at consecutive PCs."""

from __future__ import annotations

from crashlab.sass.line import SassLine

BASE = 0x1000


def listing(text: str, base: int = BASE) -> tuple[SassLine, ...]:
    """One instruction a line; a name and a colon in front of one is a label for branch targets."""
    labels: dict[str, int] = {}
    texts: list[str] = []
    for line in text.strip().splitlines():
        stripped = line.strip()
        name, colon, rest = stripped.partition(": ")
        if colon and name.isidentifier() and name.islower():
            labels[name] = base + 16 * len(texts)
            stripped = rest.strip()
        texts.append(stripped)
    found = []
    for number, words in enumerate(texts):
        for name, pc in labels.items():
            words = words.replace(f"<{name}>", hex(pc))
        found.append(SassLine(base + 16 * number, words))
    return tuple(found)


def pc_of(lines: tuple[SassLine, ...], start: str) -> int:
    """The PC of the first instruction whose text begins with ``start``."""
    return next(line.pc for line in lines if line.text.startswith(start))
