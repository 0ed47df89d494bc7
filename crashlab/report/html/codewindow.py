"""The SASS window: the registers of the faulting instruction are marked wherever the window uses them."""

from __future__ import annotations

import re
from typing import NamedTuple

from markupsafe import Markup, escape

from crashlab import facts
from crashlab.report.safe import one_line

_REGISTER = re.compile(r"\bU?[RP]\d{1,3}\b")
_WIDE = re.compile(r"\b(U?R)(\d{1,3})\.64\b")
_PREFIX = re.compile(r"^(@!?U?P\d+ |@!?U?PT )?([A-Z0-9_.]+)")
_TEXT_LIMIT = 300
_LINES = 120


class CodeLine(NamedTuple):
    """One line of the window, ready to be placed: ``text`` is markup."""

    pc: str
    text: Markup
    fault: bool
    note: str | None
    line: int | None


def code_lines(instruction: facts.Instruction | None) -> list[CodeLine]:
    """The window around the fault; the instruction alone when there is no window."""
    if instruction is None:
        return []
    wanted = registers_of(instruction.text)
    window = instruction.window[:_LINES]
    if not window:
        return [CodeLine("", marked(instruction.text, wanted), True, None, None)]
    return [
        CodeLine(str(line.pc), marked(line.text, wanted), line.fault, line.note, line.line) for line in window
    ]


def registers_of(text: str) -> frozenset[str]:
    """Registers that an instruction names; of a 64-bit pair both halves."""
    text = text[:_TEXT_LIMIT]
    pairs = {f"{name}{int(number) + 1}" for name, number in _WIDE.findall(text)}
    return frozenset(_REGISTER.findall(text)) | pairs


def marked(text: str, wanted: frozenset[str]) -> Markup:
    """The instruction with its opcode strong and the wanted registers marked."""
    text = one_line(text, _TEXT_LIMIT)
    head = _PREFIX.match(text)
    out, at = Markup(""), 0
    if head:
        out += escape(head.group(1) or "") + Markup("<b>") + escape(head.group(2)) + Markup("</b>")
        at = head.end()
    for match in _REGISTER.finditer(text, at):
        if match.group() in wanted:
            out += (
                escape(text[at : match.start()])
                + Markup("<mark>")
                + escape(match.group())
                + Markup("</mark>")
            )
            at = match.end()
    return out + escape(text[at:])
