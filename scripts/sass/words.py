"""Bits of instruction words, and what a learner exchanges with its scheduler."""

from __future__ import annotations

from tokens import tokenize

Answers = list[tuple[int, str | None]]  # (address the word was placed at, text or None) of each word asked
REUSE_BITS = [122, 123, 124, 125]
BODY_BITS = [*range(16, 105), *REUSE_BITS]  # all but opcode, guard and control fields


class GaveUp(Exception):
    """A class could not be described; ``split`` are bits on which to divide it, 0 if none."""

    def __init__(self, reason: str, split: int = 0) -> None:
        super().__init__(reason)
        self.split = split


def bits_of(mask: int) -> list[int]:
    """Returns the numbers of the set bits."""
    return [bit for bit in range(128) if mask >> bit & 1]


def runs(mask: int) -> list[tuple[int, int]]:
    """Returns (lowest bit, width) of each run of set bits."""
    found: list[tuple[int, int]] = []
    for bit in bits_of(mask):
        if found and sum(found[-1]) == bit:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((bit, 1))
    return found


def subsets(mask: int) -> list[int]:
    """Returns every word that has only bits of ``mask``."""
    words = [0]
    for bit in bits_of(mask):
        words += [word | 1 << bit for word in words]
    return words


def varying(words: list[int]) -> int:
    """Returns the bits that differ among the words."""
    both, either = -1, 0
    for word in words:
        both, either = both & word, either | word
    return either & ~both


def clean(text: str | None) -> str | None:
    """Returns the text, or None where nvdisasm itself marks a field as invalid."""
    return None if text is None or "???" in text or "INVALID" in text else text


def distances(one: str | None, pc: int, two: str | None, pc2: int) -> str | None:
    """Returns ``one`` with the numbers that move with the address as ``§distance``.

    ``one`` and ``two`` are the texts of one word at ``pc`` and ``pc2``.
    """
    if one is None or two is None or one == two:
        return one
    out = []
    for a, b in zip(tokenize(one), tokenize(two), strict=True):
        moves = a.kind == "hex" and b.number - a.number == pc2 - pc
        out.append(f"§{hex(a.number - pc - 16)}" if moves else a.text)
    return "".join(out)
