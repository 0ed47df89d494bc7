"""Lines that tie an address to a symbol or a source position."""

from __future__ import annotations

import re

from crashlab.debugger.brackets import last_group
from crashlab.debugger.frame import split_inlined, split_position
from crashlab.debugger.rows import Located, SassLine, SourceLine
from crashlab.facts import Hex, InlineFrame

_EXCEPTION_PC = re.compile(r"\s{0,16}The exception was triggered at PC\s{1,8}(0x[0-9a-fA-F]{1,16})")
_SYMBOLIC = re.compile(r"(0x[0-9a-fA-F]{1,16}) <")
_PLAIN = re.compile(r"(0x[0-9a-fA-F]{1,16})$")
_IN_SECTION = re.compile(r"(.*?)(?: \+ (\d{1,12}))? in section (\.\S{1,8192})")
_LINE = re.compile(r'\s{0,16}Line (\d{1,9}) of "([^"\n]{1,4096})"')
_LINE_START = re.compile(r"(?:starts at|is at) address (0x[0-9a-fA-F]{1,16})")
_LINE_INLINED = re.compile(r" inlined from (\S{1,8192}) at line (\d{1,9}) of (\S[^\n]{0,4095}?)\.?$")
_SASS = re.compile(r"\s{0,16}(\*=>|=>|\*>)?\s{0,16}(0x[0-9a-fA-F]{1,16})(?:\s{0,8}<|:)")
_NAME_END = re.compile(r">:(?!:)")
_NO_DISASSEMBLY = "Cannot disassemble instruction"


def parse_exception_pc(text: str) -> tuple[Hex, str | None, SourceLine | None] | None:
    """``The exception was triggered at PC 0x…  FUNCTION  (FILE:LINE in MANGLED inlined from FILE:LINE)``.

    cuda-gdb 11 to 12.4 leaves the function out, and both are absent without symbols or line table.
    """
    match = _EXCEPTION_PC.match(text)
    if match is None:
        return None
    rest = " ".join(text[match.end() :].split())
    source = None
    at = last_group(rest)
    if at is not None and (at == 0 or rest[at - 1] == " "):
        source = _position_group(rest[at + 1 : -1])
        if source is not None:
            rest = rest[:at].rstrip()
    return Hex(int(match[1], 16)), rest or None, source


def _position_group(inside: str) -> SourceLine | None:
    inside, inlined = split_inlined(inside)
    position = split_position(inside)
    if position is None:
        return None
    if inlined is None:
        return SourceLine(*position)
    return SourceLine(*position, inlined.function, InlineFrame(inlined.file, inlined.line))


def parse_symbolic(text: str) -> Located | None:
    """``$1 = (void (*)()) 0xPC <NAME+OFF>``, ``errorpc 0xPC 0xPC <NAME+OFF>``: the last address of a line."""
    text = text.rstrip()
    match = _SYMBOLIC.search(text) if text.endswith(">") else None
    if match:
        return Located(Hex(int(match[1], 16)), *split_offset(text[match.end() : -1]))
    match = _PLAIN.search(text, max(0, len(text) - 20))
    return Located(Hex(int(match[1], 16)), None) if match else None


def parse_info_symbol(text: str) -> Located | None:
    """``NAME + OFF in section .text.KERNEL of FILE``."""
    match = _IN_SECTION.match(text.strip())
    if match is None or not match[1]:
        return None
    return Located(None, match[1], int(match[2]) if match[2] else 0, match[3])


def parse_info_line(text: str) -> tuple[SourceLine, Hex | None] | None:
    """``Line N of "FILE" starts at address 0x… <…> and ends at … inlined from F at line N of FILE.``

    The address is where the line's instructions begin, not the one that was asked about.
    """
    match = _LINE.match(text)
    if match is None:
        return None
    file, line = match[2], int(match[1])
    address = _LINE_START.search(text, match.end())
    start = Hex(int(address[1], 16)) if address else None
    at = text.rfind(" inlined from ")
    inlined = _LINE_INLINED.match(text, at) if at >= 0 else None
    if inlined is None:
        return SourceLine(file, line), start
    return SourceLine(file, line, inlined[1], InlineFrame(inlined[3], int(inlined[2]))), start


def parse_sass(text: str) -> SassLine | None:
    """``*> 0xPC <MANGLED+OFF>:\\tOPCODE OPERANDS``; also ``<+OFF>`` of ``disassemble`` and no symbol."""
    match = _SASS.match(text)
    if match is None:
        return None
    name: str | None = None
    offset: int | None = None
    if text[match.end() - 1] == "<":
        end = _NAME_END.search(text, match.end())
        if end is None:
            return None
        name, offset = split_offset(text[match.end() : end.start()])
        rest = text[end.end() :]
    else:
        rest = text[match.end() :]
    rest = " ".join(rest.split())
    mark = match[1] or ""
    return SassLine(
        Hex(int(match[2], 16)),
        name,
        offset,
        None if not rest or rest.startswith(_NO_DISASSEMBLY) else rest,
        mark.endswith("=>"),
        mark.startswith("*"),
    )


def split_offset(symbol: str) -> tuple[str | None, int]:
    """``name+560`` → both; a symbol without offset is at its start. ``disassemble`` prints only ``+560``."""
    name, _, offset = symbol.rpartition("+")
    if not offset.isdecimal() or len(offset) > 12:
        return symbol or None, 0
    return name or None, int(offset)
