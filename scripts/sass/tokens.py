"""Instruction text as tokens, and the difference of two texts as one or more replaced ranges."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import NamedTuple

_TOKEN = re.compile(
    r"(?P<reg>(?<![\w.])(?:UR|R|UP|P|B|UB|SB|gsb)\d+\b)"
    r"|(?P<target>§-?0x[0-9a-f]+)"
    r"|(?P<hex>-?0x[0-9a-f]+)"
    r"|(?P<float>(?<= )[-+]?(?:0\.0 |\d[\d.]*(?:e[-+]\d+)?(?=,|$| )|INF |[QS]NAN |INF$|[QS]NAN$))"
    r"|(?P<word>\.?[\w?]+(?:\.(?=H\d))?)"
    r"|(?P<comma>, )"
    r"|(?P<other>.)"
)


class Token(NamedTuple):
    """A piece of text; ``kind`` is a register prefix, ``hex``, ``float``, ``target`` or "" for words."""

    kind: str
    text: str

    @property
    def number(self) -> int:
        """The register number or integer of a token that has one."""
        if self.kind in ("hex", "target"):
            return int(self.text.lstrip("§"), 16)
        return int(self.text[len(self.kind) :])


def tokenize(text: str) -> list[Token]:
    """Returns the tokens of ``text``; joined they give the text back."""
    tokens = []
    for match in _TOKEN.finditer(text):
        group, value = match.lastgroup, match.group()
        if group == "reg":
            tokens.append(Token(value.rstrip("0123456789"), value))
        elif group in ("hex", "float", "target"):
            tokens.append(Token(group or "", value))
        else:
            tokens.append(Token("", value))
    return tokens


class Hunk(NamedTuple):
    """Tokens ``low:high`` of the base text are replaced by ``low2:high2`` of the other text."""

    low: int
    high: int
    low2: int
    high2: int


def _slide(base: list[str], other: list[str], hunk: Hunk) -> Hunk:
    """Moves a pure insertion or deletion so that it begins with its separator, if it can."""
    low, high, low2, high2 = hunk
    seq, start, stop = (other, low2, high2) if low == high else (base, low, high)
    if low != high and low2 != high2:
        return hunk
    best, shift = 0, 0
    while start + shift > 0 and seq[start + shift - 1] == seq[stop + shift - 1]:
        shift -= 1
        if seq[start + shift] in (", ", "+", " "):
            best = shift
            break
    return Hunk(low + best, high + best, low2 + best, high2 + best)


def diff(base: list[str], other: list[str]) -> list[Hunk]:
    """Returns the replaced ranges between two token lists, in order."""
    head = 0
    limit = min(len(base), len(other))
    while head < limit and base[head] == other[head]:
        head += 1
    tail = 0
    while tail < limit - head and base[-1 - tail] == other[-1 - tail]:
        tail += 1
    end, end2 = len(base) - tail, len(other) - tail
    if head == end and head == end2:
        return []
    if head in (end, end2):
        return [_slide(base, other, Hunk(head, end, head, end2))]
    matcher = SequenceMatcher(None, base[head:end], other[head:end2], autojunk=False)
    return [
        _slide(base, other, Hunk(head + a, head + b, head + c, head + d))
        for op, a, b, c, d in matcher.get_opcodes()
        if op != "equal"
    ]
