"""The head of an instruction's text, guard and mnemonic, and what the opcode alone says about it.

Apart from the operand parser because an answer in a hurry needs no more, and the parser's import alone
would cost it a tenth of its time.
"""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

import re
from typing import NamedTuple

from crashlab.errors import CrashlabError

MAX_TEXT = 1 << 16

_HEAD = re.compile(r"(?:@(!?)(U?P[0-6T])[ \t]+)?([A-Z][A-Z0-9_]*)((?:\.[A-Za-z0-9_]+)*)(?=[ \t]|\Z)")
_ANNOTATION = re.compile(r"\(\*[^()]*\*\)")


class Head(NamedTuple):
    """``predicate`` is None when there is none; ``modifiers`` are without their dots; ``rest`` is the operands."""

    predicate: str | None
    negated: bool
    opcode: str
    modifiers: tuple[str, ...]
    rest: str

    @property
    def mnemonic(self) -> str:
        """``LDG.E.128``."""
        return ".".join((self.opcode, *self.modifiers))

    @property
    def guard(self) -> str | None:
        """``!P2``."""
        if self.predicate is None:
            return None
        return f"!{self.predicate}" if self.negated else self.predicate


def split_head(text: str) -> Head:
    """Cut the head off one instruction. Raises CrashlabError when it is no instruction text."""
    if len(text) > MAX_TEXT:
        raise CrashlabError(f"instruction text of {len(text)} characters is no instruction")
    body = _ANNOTATION.sub("", text).strip().rstrip(";").rstrip()
    head = _HEAD.match(body)
    if head is None:
        raise CrashlabError(f"not an instruction: {text[:60]!r}")
    negation, predicate, opcode, modifiers = head.groups()
    return Head(predicate, negation == "!", opcode, tuple(modifiers.split(".")[1:]), body[head.end() :])


def access_of(opcode: str) -> tuple[str | None, str | None]:
    """Kind of access and memory space of an opcode; None for what it does not have or is not known."""
    from crashlab.sass import opcodes

    row = opcodes.row(opcode)
    return (None, None) if row is None else (row.access, row.space)
