"""Answers about an address: whether the errorpc or the thread's own PC was meant.

A transcript answers ``$1 = …``, ``NAME + 16 in section …`` or ``Line 7 of …`` without repeating the
question. The question is known from the marker that our own command list prints, from a pasted prompt
line, or from the address itself.
"""

from __future__ import annotations

from typing import Any

from crashlab.debugger.located import parse_info_line, parse_info_symbol, parse_sass, parse_symbolic
from crashlab.debugger.rows import Located, SassLine, SourceLine
from crashlab.debugger.tables import parse_register
from crashlab.facts import Hex

MAX_WINDOW = 4096
MAX_REGISTERS = 1024
ERRORPC = "errorpc"
PC = "pc"
_MARKERS = {"errorpc": ERRORPC, "line": ERRORPC, "pc": PC}
_DUMP_OF = "Dump of assembler code for function "


class Subjects:
    """What was said about the two addresses, plus registers and disassembly."""

    def __init__(self) -> None:
        self.errorpc: Hex | None = None
        self.pc: Hex | None = None
        self.cannot_disassemble = False
        self._asked: str | None = None
        self._values = 0
        self._registers: dict[str, Hex] = {}
        self._window: dict[Hex, SassLine] = {}
        self._dumped: str | None = None
        self._symbols: dict[str, Located] = {}
        self._sources: dict[str, SourceLine] = {}

    def take(self, kind: str, text: str) -> None:
        """Read one logical line of any kind that is about an address."""
        if kind == "marker":
            self._asked, self._values = _MARKERS.get(text.strip()[2:]), 0
        elif kind == "command":
            self._asked, self._values = _subject_of(text), 0
        elif kind == "value":
            self._value(text)
        elif kind == "unavailable":
            self._values += 1
        elif kind == "register":
            self._register(text)
        elif kind == "symbol":
            self._symbol(text)
        elif kind == "line":
            parsed = parse_info_line(text)
            if parsed is not None and (subject := self._subject()):
                self._sources.setdefault(subject, parsed[0])
        elif kind == "sass":
            self._sass(text)
        elif kind == "text" and text.startswith(_DUMP_OF):
            self._dumped = text[len(_DUMP_OF) :].rstrip(":") or None

    def _subject(self) -> str | None:
        return self._asked or (ERRORPC if self.errorpc is not None else None)

    def _value(self, text: str) -> None:
        """``print $errorpc`` then ``print $pc`` under one marker: the second answer is the PC's."""
        self._values += 1
        located = parse_symbolic(text)
        if located is None or located.pc is None:
            return
        subject = self._asked
        if subject == ERRORPC and self._values > 1 and located.pc != self.errorpc:
            subject = PC if self._values == 2 else None
        self._locate(ERRORPC if located.pc == self.errorpc else subject, located)

    def _register(self, text: str) -> None:
        parsed = parse_register(text)
        if parsed is None:
            return
        name, value = parsed
        if value is None:
            return
        if len(self._registers) < MAX_REGISTERS:
            self._registers.setdefault(name, value)
        if name in (ERRORPC, PC):
            located = parse_symbolic(text)
            self._locate(name, located if located and located.pc == value else Located(value, None))

    def _symbol(self, text: str) -> None:
        parsed = parse_info_symbol(text)
        subject = self._subject()
        if parsed is None or subject is None:
            return
        known = self._symbols.get(subject)
        if known is None:
            self._symbols[subject] = parsed
        elif known.section is None and known.offset in (None, parsed.offset):
            self._symbols[subject] = known._replace(
                section=parsed.section, name=known.name or parsed.name, offset=parsed.offset
            )

    def _locate(self, subject: str | None, located: Located) -> None:
        if subject is None:
            return
        if subject == ERRORPC:
            if self.errorpc is None:
                self.errorpc = located.pc
            elif located.pc != self.errorpc:
                return
        elif self.pc is None:
            self.pc = located.pc
        elif located.pc != self.pc:
            return
        known = self._symbols.get(subject)
        if known is None or known.name is None:
            section = known.section if known else None
            offset = located.offset if located.name else None
            self._symbols[subject] = located._replace(offset=offset, section=section)
        elif known.pc is None:
            self._symbols[subject] = known._replace(pc=located.pc)

    def _sass(self, text: str) -> None:
        line = parse_sass(text)
        if line is None or len(self._window) >= MAX_WINDOW:
            return
        if line.text is None and line.name is None and not (line.is_pc or line.is_errorpc):
            return  # memory that is no code: gdb steps through it byte by byte
        if line.text is None and "Cannot disassemble instruction" in text:
            self.cannot_disassemble = True
        if line.name is None and line.offset is not None and self._dumped:
            line = line._replace(name=self._dumped)
        known = self._window.get(line.pc)
        if known is not None:
            line = SassLine(
                line.pc,
                known.name or line.name,
                known.offset if known.name else line.offset,
                known.text or line.text,
                known.is_pc or line.is_pc,
                known.is_errorpc or line.is_errorpc,
            )
        self._window[line.pc] = line

    def source_of_errorpc(self) -> SourceLine | None:
        """What ``info line *$errorpc`` said."""
        return self._sources.get(ERRORPC)

    def facts(self, errorpc: Hex | None, frame_pc: Hex | None) -> dict[str, Any]:
        """By the field names of ``Transcript``; the instruction lines give mangled names, so they win."""
        window = tuple(self._window.values())
        errorpc = errorpc or self.errorpc or next((w.pc for w in window if w.is_errorpc), None)
        pc = self.pc or frame_pc or next((w.pc for w in window if w.is_pc), None)
        return {
            "errorpc": errorpc,
            "pc": pc,
            "errorpc_symbol": self._joined(ERRORPC, errorpc),
            "pc_symbol": self._joined(PC, pc),
            "registers": dict(self._registers) or None,
            "window": window,
        }

    def _joined(self, subject: str, pc: Hex | None) -> Located | None:
        known = self._symbols.get(subject)
        line = self._window.get(pc) if pc is not None else None
        if line is not None and line.name:
            return Located(pc, line.name, line.offset, known.section if known else None)
        return known._replace(pc=pc) if known is not None and (known.name or known.section) else None


def _subject_of(command: str) -> str | None:
    if "$errorpc" in command:
        return ERRORPC
    return PC if "$pc" in command else None
