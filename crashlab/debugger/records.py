"""Logical lines: which kind of line each one is, with hard-wrapped ones put together again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from crashlab.debugger.brackets import open_brackets

MAX_JOINED = 200
"""Physical lines that one wrapped line may span. Template names of some libraries fill dozens."""

_WRAP_WIDTH = 70
"""No terminal that people paste from is narrower, so a shorter line was not wrapped for want of room."""


class Record(NamedTuple):
    """One logical line. ``kind`` is one of :data:`KINDS`, ``table`` for a heading, ``blank`` or ``text``."""

    kind: str
    text: str


_REGISTER = r"(?:pc|errorpc|U?R(?:\d{1,3}|Z)|U?P[\dT]|CC)\s{1,20}(?:0x|<unav)"

KINDS: tuple[tuple[str, str, str], ...] = (
    ("marker", "=", r"==[A-Za-z][\w-]{0,31}$"),
    ("sass", "=*0", r"(?:\*=>|=>|\*>|)\s{0,4}0x[0-9a-fA-F]{1,16}(?:\s{0,8}<|:)"),
    ("frame-plain", "0", r"0x[0-9a-fA-F]{1,16} in \S"),
    ("command", "(", r"\((?:cuda-)?gdb\)"),
    ("frame", "#", r"#\d{1,6}\s{1,8}\S"),
    ("value", "$", r"\$\d{1,6} = "),
    ("focus", "[", r"\[(?:Current focus set|Switching focus) to CUDA "),
    ("focus-plain", "k", r"kernel \d{1,12}, grid -?\d{1,20}, "),
    ("open", "O", r"Opening GPU coredump:"),
    ("exception", "C", r"CUDA Exception: ?\S"),
    ("cannot-open", "C", r"Could not open CUDA core file|Couldn't open "),
    ("pc", "T", r"The exception was triggered at PC\s{1,4}0x"),
    ("device", "T", r"The exception was triggered in device \d"),
    ("cluster", "T", r"The imprecise exception was triggered by a thread in cluster"),
    ("signal", "T", r"Thread \d{1,9} .{0,400}received signal "),
    ("signal", "P", r"Program (?:received|terminated with) signal "),
    ("assert", "A", r"Assertion failed\.$"),
    ("abort", "A", r"A fatal error internal to GDB|A problem internal to GDB|Aborted"),
    ("abort", "t", r"terminate called "),
    ("abort-detail", "w", r"what\(\): "),
    ("warning", "w", r"warning: "),
    ("abort", "F", r"Fatal signal: "),
    ("cannot-open", "F", r"Failed to (?:read core file|get debugger APIs|initialize CUDA)"),
    ("abort", "S", r"Segmentation fault"),
    ("no-focus", "F", r"Focus (?:is )?not set on any active CUDA kernel"),
    ("no-kernels", "N", r"No CUDA kernels\."),
    ("no-focus", "N", r"No CUDA (?:Warps|Lanes|focus)"),
    ("no-line", "N", r"No line number information available"),
    ("no-symbol", "N", r"No symbol matches "),
    ("version", "N", r"NVIDIA \(R\) (?:cuda-gdb|CUDA Debugger)"),
    ("version", "0123456789", r"\d{1,2}\.\d{1,2} release$"),
    ("source", "0123456789", r"\d{1,9}(?:\t| {2,}(?![\d*]))\S"),
    ("line", "L", r'Line \d{1,9} of "'),
    ("undefined", "U", r"Undefined \S{0,16} ?command: |Unrecognized (?:option|argument)"),
    ("unavailable", "vV", r"value is not available|Value can't be converted"),
    ("register", "peRUPC", _REGISTER),
)
"""Kind of line, the characters it can begin with, and how it begins. The first that fits wins."""

_BY_FIRST: dict[str, tuple[tuple[str, re.Pattern[str]], ...]] = {
    first: tuple((kind, re.compile(pattern)) for kind, firsts, pattern in KINDS if first in firsts)
    for first in {character for _, firsts, _ in KINDS for character in firsts}
}
_INSIDE = ((" in section .text", "symbol"), ("internal-error: ", "abort"))

_CONTINUES = frozenset({"text", "source", "symbol"})
_POSITION_END = re.compile(r":\d{1,9}$")
_POSITION_GROUP = re.compile(r"\s{0,64}\([^\s()]{1,4096}:\d{1,9}[ )]")
_FRAME_TAIL = re.compile(r"\s{0,64}(?:at|from) \S")


def kind_of(line: str) -> str:
    """The kind of one physical line; ``blank`` for an empty one and ``text`` for anything unknown."""
    text = line.lstrip()
    if not text:
        return "blank"
    for kind, pattern in _BY_FIRST.get(text[0], ()):
        if pattern.match(text):
            return kind
    for inside, kind in _INSIDE:
        if inside in text:
            return kind
    return "text"


def records(lines: list[str]) -> Iterator[Record]:
    """All logical lines in order, with a wrapped one joined into one record.

    Only kinds of line that are known to grow long are joined, only with lines that are nothing by
    themselves, and only while the line so far is visibly unfinished.
    """
    widths = Counter(map(len, lines))
    kinds = [kind_of(line) for line in lines]
    at = 0
    while at < len(lines):
        kind, state = kinds[at], _Open(lines[at])
        at += 1
        unfinished = _UNFINISHED.get(kind)
        end = at + MAX_JOINED if unfinished else at
        while at < min(len(lines), end) and kinds[at] in _CONTINUES:
            if unfinished is None or not unfinished(state, lines[at], kinds[at]):
                break
            state.add(lines[at])
            at += 1
        yield Record(kind, state.text(widths))


class _Open:
    """A logical line being put together; counts brackets as it grows, so that joining stays linear."""

    def __init__(self, first: str) -> None:
        self.parts = [first]
        self.last = first
        self.depth = open_brackets(first)

    def add(self, line: str) -> None:
        """Append a continuation line."""
        self.parts.append(line)
        self.last = line
        self.depth += open_brackets(line)

    def text(self, widths: Counter[int]) -> str:
        """The whole line.

        A debugger breaks between words and indents the rest; an editor breaks at a blank and drops
        it; a terminal breaks anywhere, even within a word, and fills every line to its width.
        """
        if len(self.parts) == 1:
            return self.last
        full = [len(part) for part in self.parts[:-1]]
        width = max(full)
        several = len(full) > 1 or widths[width] > 1 or width == max(widths)
        terminal = several and width >= _WRAP_WIDTH and min(full) >= width - 1
        glued = [self.parts[0]]
        for before, part in zip(self.parts, self.parts[1:], strict=False):
            filled = terminal and len(before) == width and part[:1] not in (" ", "\t")
            glued += ("" if filled else " ", part.lstrip())
        return "".join(glued)


def _focus_unfinished(state: _Open, _line: str, _kind: str) -> bool:
    return "]" not in state.last


def _pc_unfinished(state: _Open, line: str, kind: str) -> bool:
    if kind != "text":
        return False
    full = len(state.last) >= _WRAP_WIDTH and not state.last.endswith(")")
    open_end = state.depth > 0 or state.last.endswith((" void", " in", " from", " inlined"))
    return (
        open_end or full or _indent(line) > _indent(state.parts[0]) or _POSITION_GROUP.match(line) is not None
    )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _frame_unfinished(state: _Open, line: str, kind: str) -> bool:
    if kind == "source":  # a listing line, unless the frame is open and the number belongs to a type
        return state.depth > 0
    if _FRAME_TAIL.match(line) or state.depth > 0:
        return True
    last = state.last.rstrip()
    if _POSITION_END.search(last, max(0, len(last) - 12)):
        return False
    return not last.endswith(")") or (len(last) >= _WRAP_WIDTH and line.startswith("<<<"))


def _sass_unfinished(state: _Open, _line: str, kind: str) -> bool:
    return kind == "text" and "<" in state.parts[0] and not _names_closed(state)


def _names_closed(state: _Open) -> bool:
    return ">:" in state.last and not state.last.endswith(">:")


def _value_unfinished(state: _Open, _line: str, kind: str) -> bool:
    return kind == "text" and " <" in state.parts[0] and not state.last.endswith(">")


def _line_unfinished(state: _Open, _line: str, kind: str) -> bool:
    return kind == "text" and not state.last.endswith(".")


_UNFINISHED = {
    "focus": _focus_unfinished,
    "pc": _pc_unfinished,
    "frame": _frame_unfinished,
    "frame-plain": _frame_unfinished,
    "sass": _sass_unfinished,
    "value": _value_unfinished,
    "line": _line_unfinished,
}
