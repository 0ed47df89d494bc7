"""The instruction at a PC as a fact, with the window around it."""

from __future__ import annotations

from collections.abc import Sequence

from crashlab import facts
from crashlab.errors import CrashlabError
from crashlab.postmortem.codemap import CodeHit
from crashlab.sass.line import SassLine
from crashlab.sass.operands import parse

BEFORE, AFTER = 8, 6


def instruction_at(
    lines: Sequence[SassLine] | None,
    pc: int,
    code: CodeHit | None,
    *,
    before: int = BEFORE,
    after: int = AFTER,
    decoded_by: str | None = None,
) -> facts.Instruction | None:
    """Text, classification and window of the instruction at ``pc``; None when it could not be read."""
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
        parsed = parse(text)
    except CrashlabError:
        return facts.Instruction(text, window=window, decoded_by=decoded_by)
    predicate = None
    if parsed.predicate is not None:
        predicate = f"!{parsed.predicate}" if parsed.predicate_negated else parsed.predicate
    return facts.Instruction(
        text=text,
        opcode=".".join((parsed.opcode, *parsed.modifiers)) if parsed.opcode else None,
        predicate=predicate,
        access=parsed.access,
        space=parsed.space,
        width_bytes=parsed.width_bytes,
        window=window,
        decoded_by=decoded_by,
    )


def _line(code: CodeHit | None, pc: int) -> int | None:
    source = code.source_of(pc) if code else None
    return source.line if source else None
