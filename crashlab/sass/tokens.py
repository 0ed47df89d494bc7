"""Instruction text into predicate, mnemonic and operand texts: nvdisasm's and cuda-gdb's spelling.

cuda-gdb 13 writes no blank after a comma and drops the comma before a bracket: ``LDS R11[R0]``,
``UTMALDG.2D [UR4][UR8]``, ``SYNCS.PHASECHK.TRANS64.TRYWAIT P0[UR4],R0``.
"""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

import re
from typing import NamedTuple

from crashlab.errors import CrashlabError
from crashlab.sass.head import split_head

MAX_OPERANDS = 32

# What may stand before a bracket as part of the same operand: c[..][..], desc[..][..], tmem[..] …
_BRACKET_WORD = re.compile(r"[-~|!]{0,2}[a-z]+\Z")
_NEXT_OPERAND = re.compile(r"[a-z]{1,8}\[")
_GROUPS = {"c": 2, "cx": 2, "desc": 2}


class Tokens(NamedTuple):
    """``predicate`` is None when there is none; ``modifiers`` are without their dots."""

    predicate: str | None
    negated: bool
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[str, ...]


def split_text(text: str) -> Tokens:
    """Cut one instruction into its parts. Raises CrashlabError when it is no instruction text."""
    head = split_head(text)
    return Tokens(head.predicate, head.negated, head.opcode, head.modifiers, tuple(_operands(head.rest)))


def _operands(text: str) -> list[str]:
    found: list[str] = []
    for piece in _pieces(text):
        found.extend(part for part in _unglue(piece) if part)
        if len(found) > MAX_OPERANDS:
            raise CrashlabError(f"more than {MAX_OPERANDS} operands: {text[:60]!r}")
    return found


def _pieces(text: str) -> list[str]:
    """Split at commas outside brackets; label names such as `` `(f<a, b>) `` count as brackets."""
    pieces, depth, begin = [], 0, 0
    for at, letter in enumerate(text):
        if letter in "[({":
            depth += 1
        elif letter in "])}":
            depth -= 1
        elif letter == "," and depth <= 0:
            pieces.append(text[begin:at].strip())
            begin = at + 1
    pieces.append(text[begin:].strip())
    return pieces


def _unglue(piece: str) -> list[str]:
    """Separate ``R11[R0]``, ``[UR4][UR8]`` and ``R2 -0x17b0``, keep ``desc[UR4][R2.64]`` whole."""
    if "`" in piece or "(" in piece:
        register, _, label = piece.partition(" ")
        return [register, label.strip()] if label and "`" not in register else [piece]
    if "[" not in piece:
        return piece.split()
    parts, begin, at = [], 0, 0
    while (bracket := piece.find("[", at)) >= 0:
        word = piece[begin:bracket].strip()
        groups = 1
        if word:
            if _BRACKET_WORD.match(word):
                groups = _GROUPS.get(word.lstrip("-~|!"), 1)
            else:
                parts.append(word)
                begin = bracket
        at = _close(piece, bracket, groups)
        # Modifiers behind the bracket belong to the operand: c[0x0][0x160].H0_H0, |c[0x0][0x4]|
        while at < len(piece) and piece[at] not in "[ \t" and not _NEXT_OPERAND.match(piece, at):
            at += 1
        parts.append(piece[begin:at].strip())
        begin = at
    parts.append(piece[begin:].strip())
    return parts


def _close(piece: str, bracket: int, groups: int) -> int:
    """The position behind the last of ``groups`` adjacent bracket pairs that begin at ``bracket``."""
    at = bracket
    for _ in range(groups):
        # Half-precision forms print a blank in between: c[0x0] [0x164].H0_H0
        opening = at + 1 if piece.startswith(" [", at) else at
        if not piece.startswith("[", opening):
            break
        end = piece.find("]", opening)
        if end < 0:
            raise CrashlabError(f"bracket without end: {piece[:60]!r}")
        at = end + 1
    return at
