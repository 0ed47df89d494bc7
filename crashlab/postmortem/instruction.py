"""The instruction at a PC as a fact, with the window around it."""

from __future__ import annotations

from collections.abc import Sequence

from crashlab import facts
from crashlab.errors import CrashlabError
from crashlab.postmortem.codemap import CodeHit
from crashlab.sass.head import access_of, split_head
from crashlab.sass.line import SassLine

BEFORE, AFTER = 8, 6


def instruction_at(
    lines: Sequence[SassLine] | None,
    pc: int,
    code: CodeHit | None,
    *,
    before: int = BEFORE,
    after: int = AFTER,
    decoded_by: str | None = None,
    operands: bool = True,
) -> facts.Instruction | None:
    """Text, classification and window of the instruction at ``pc``; None when it could not be read.

    Without ``operands`` they are not parsed, and the access width stays unknown; access and space follow
    from the opcode, so that both ways give the same keys.
    """
    if not lines:
        return None
    at = next((i for i, line in enumerate(lines) if line.pc == pc), None)
    if at is None:
        return None
    window = tuple(
        facts.WindowLine(facts.Hex(line.pc), line.text, line.pc == pc, None, _line(code, line.pc))
        for line in lines[max(0, at - before) : at + after + 1]
    )
    text = lines[at].text
    try:
        head = split_head(text)
        access, space = access_of(head.opcode)
        width = _width(text) if operands else None
    except CrashlabError:
        return facts.Instruction(text, window=window, decoded_by=decoded_by)
    return facts.Instruction(
        text=text,
        opcode=head.mnemonic,
        predicate=head.guard,
        access=access,
        space=space,
        width_bytes=width,
        window=window,
        decoded_by=decoded_by,
    )


def _width(text: str) -> int | None:
    """Bytes that one lane accesses. Imported here: the operand parser costs a hurried answer a tenth of its time."""
    from crashlab.sass.operands import parse

    try:
        return parse(text).width_bytes
    except CrashlabError:
        return None


def _line(code: CodeHit | None, pc: int) -> int | None:
    source = code.source_of(pc) if code else None
    return source.line if source else None
