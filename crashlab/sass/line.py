"""One disassembled instruction: what every disassembler yields."""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

from typing import NamedTuple


class SassLine(NamedTuple):
    """``pc`` is the absolute address; ``text`` is nvdisasm's spelling without the closing `` ;``.

    The predicate is part of the text and blanks are single: ``@!P2 STG.E desc[UR6][R14.64], R11``.
    """

    pc: int
    text: str
