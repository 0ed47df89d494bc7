"""One class of instructions: which bits choose which words of its text.

A class is written in a table file as a block of lines (tab-separated, read lazily):

``@ 981 LDG P 0 0``
    opcode (the word's low 12 bits), a name for people, how the guard predicate is printed (``P``,
    ``UP`` or ``-``), and the bits (mask, value; hexadecimal) that a word needs besides its opcode.
``s a R 24:8:0 255``
    slot ``a`` prints a register ``R``: its bits as low:width:position, and values that do not print
    as a number (register 255 is RZ). Kinds: see :func:`crashlab.sass.decode.literals.formatter`.
``g 73:3 a``
    a group: bits and slots that choose words together. One row a value follows: the value, then one
    cell for each place of the group in the text, with ``$a`` where slot ``a`` prints.
``t LDG<0.0> <1.0>, ...``
    the text: literal words, ``<group.cell>`` and ``$slot``.

A value that has no row was never proven: the instruction is unknown.
"""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

import re
from typing import NamedTuple

from crashlab.sass.decode.literals import Formatter, Segment, formatter, gather

CATEGORY_BIT = 128  # categories of slots are kept above the 128 bits of the word
_CATEGORY_WIDTH = 8
_CATEGORY_MASK = (1 << _CATEGORY_WIDTH) - 1
_PIECE = re.compile(r"<(\d+)\.(\d+)>|\$([a-z])")
_GUARDS = {
    "P": tuple("" if n == 7 else f"@{'!' * (n >> 3)}P{'T' if n & 7 == 7 else n & 7} " for n in range(16)),
    "UP": tuple("" if n == 7 else f"@{'!' * (n >> 3)}UP{'T' if n & 7 == 7 else n & 7} " for n in range(16)),
}


class Slot(NamedTuple):
    """A number in the text: where its bits are, how it prints, and which values do not."""

    kind: str
    segments: tuple[Segment, ...]
    mask: int
    codes: dict[int, int]  # masked word -> category, already shifted above the word
    print: Formatter


class Group:
    """Words chosen together: the bits and categories that choose, and a row of cells for each value.

    Rows stay the text that the table has: of a class's hundreds a program uses a handful, and reading them all
    took three quarters of the time that compiling a class took.
    """

    __slots__ = ("_bits", "_members", "_texts", "mask")

    def __init__(self, bits: tuple[Segment, ...], members: tuple[int, ...]) -> None:
        self._bits, self._members = bits, members
        self._texts: dict[str, str] = {}
        self.mask = segments_mask(bits)
        for offset in members:
            self.mask |= _CATEGORY_MASK << offset

    def add(self, line: str) -> None:
        """Takes one row: its value, and its cells after a tab each."""
        self._texts[line.partition("\t")[0]] = line

    def cells(self, key: int) -> list[str] | None:
        """Returns the cells that a shape key chooses, or None for a value that was never proven."""
        value = f"{gather(key, self._bits):x}" if self._bits else ""
        for offset in self._members:
            value += f"/{key >> offset & _CATEGORY_MASK}"
        line = self._texts.get(value)
        return None if line is None else line.split("\t")[1:]

    @property
    def rows(self) -> dict[int, tuple[str, ...]]:
        """The cells of every proven value, by shape key: for tools that ask about all of them."""
        return {self._key(value): tuple(line.split("\t")[1:]) for value, line in self._texts.items()}

    def _key(self, text: str) -> int:
        value, *codes = text.split("/")
        key = scatter(int(value, 16), self._bits) if value else 0
        for offset, code in zip(self._members, codes, strict=True):
            key |= int(code) << offset
        return key


class Shape(NamedTuple):
    """An instruction text with holes: a %-format and the slots that fill it."""

    format: str
    prints: tuple[Formatter, ...]


def segments_mask(segments: tuple[Segment, ...]) -> int:
    """Returns the word bits that ``segments`` cover."""
    mask = 0
    for low, width, _ in segments:
        mask |= ((1 << width) - 1) << low
    return mask


def scatter(value: int, segments: tuple[Segment, ...]) -> int:
    """Returns word bits that :func:`gather` reads as ``value``."""
    word = 0
    for low, width, position in segments:
        word |= ((value >> position) & ((1 << width) - 1)) << low
    return word


def parse_segments(text: str) -> tuple[Segment, ...]:
    """Reads ``24:8:0,32:4:8``."""
    return tuple((int(a), int(b), int(c)) for a, b, c in (part.split(":") for part in text.split(",")))


class ClassModel:
    """A class, compiled from its block of lines. Not thread-bound; caches grow with distinct shapes."""

    def __init__(self, lines: list[str]) -> None:
        self.slots: dict[str, Slot] = {}
        self.groups: list[Group] = []
        self.pieces: list[str | tuple[int, int]] = []
        for line in lines:
            if line[1:2] == " ":
                self._read(line[0], line[2:])
            else:
                self.groups[-1].add(line)
        self.mask = 0
        for group in self.groups:
            self.mask |= group.mask
        self.mask &= (1 << CATEGORY_BIT) - 1
        self._categories = tuple((slot.mask, slot.codes) for slot in self.slots.values() if slot.codes)
        self.relative = any(slot.kind == "target" for slot in self.slots.values())
        self._shapes: dict[int, Shape | None] = {}

    def _read(self, kind: str, rest: str) -> None:
        if kind == "@":
            opcode, self.name, guard, mask, value = rest.split(" ")
            self.opcode = int(opcode, 16)
            self.guards = _GUARDS.get(guard)
            self.when_mask, self.when_value = int(mask, 16), int(value, 16)
        elif kind == "s":
            self._read_slot(rest.split(" "))
        elif kind == "g":
            self._open_group(rest.split(" "))
        else:
            self._read_text(rest)

    def _read_slot(self, fields: list[str]) -> None:
        name, kind, where, *special = fields
        segments = parse_segments(where)
        offset = CATEGORY_BIT + _CATEGORY_WIDTH * len(self.slots)
        codes: dict[int, int] = {}
        for code, text in enumerate(special, 1):
            values = [1 << n for n in range(1, 31)] if text == "pow2" else [int(text)]
            for value in values:
                codes.setdefault(scatter(value, segments), code << offset)
        self.slots[name] = Slot(kind, segments, segments_mask(segments), codes, formatter(kind, segments))

    def _open_group(self, members: list[str]) -> None:
        bits: list[Segment] = []
        categories: list[int] = []
        for member in members:
            if member[0].isdigit():
                low, width = (int(part) for part in member.split(":"))
                bits.append((low, width, sum(segment[1] for segment in bits)))
            else:
                categories.append(CATEGORY_BIT + _CATEGORY_WIDTH * list(self.slots).index(member))
        self.groups.append(Group(tuple(bits), tuple(categories)))

    def _read_text(self, text: str) -> None:
        end = 0
        for match in _PIECE.finditer(text):
            if match.group(3):
                continue
            self.pieces.append(text[end : match.start()])
            self.pieces.append((int(match.group(1)), int(match.group(2))))
            end = match.end()
        self.pieces.append(text[end:])

    def key(self, word: int) -> int:
        """Returns the shape key of ``word``: the bits and slot categories that choose its words."""
        key = word & self.mask
        for mask, codes in self._categories:
            code = codes.get(word & mask)
            if code:
                key |= code
        return key

    def shape(self, word: int) -> Shape | None:
        """Returns the shape of ``word``, or None where it was not proven."""
        key = self.key(word)
        try:
            return self._shapes[key]
        except KeyError:
            shape = self._shapes[key] = self._build(key)
            return shape

    def _build(self, key: int) -> Shape | None:
        cells = []
        for group in self.groups:
            row = group.cells(key)
            if row is None:
                return None
            cells.append(row)
        parts = [piece if isinstance(piece, str) else cells[piece[0]][piece[1]] for piece in self.pieces]
        prints: list[Formatter] = []
        format_parts: list[str] = []
        end = 0
        text = "".join(parts).replace("%", "%%")
        for match in _PIECE.finditer(text):
            format_parts += [text[end : match.start()], "%s"]
            prints.append(self.slots[match.group(3)].print)
            end = match.end()
        format_parts.append(text[end:])
        return Shape("".join(format_parts), tuple(prints))

    def text(self, word: int, pc: int) -> str | None:
        """Returns the instruction without its guard predicate, or None where it was not proven."""
        shape = self.shape(word)
        if shape is None:
            return None
        return (shape.format % tuple([show(word, pc) for show in shape.prints])).rstrip()

    def guarded_text(self, word: int, pc: int) -> str | None:
        """Returns the whole instruction text, or None where it was not proven."""
        text = self.text(word, pc)
        if text is None or self.guards is None:
            return text
        return self.guards[(word >> 12) & 15] + text

    def values(self, word: int) -> dict[str, int]:
        """Returns every slot's number in ``word`` (registers, immediates), by slot name."""
        return {name: gather(word, slot.segments) for name, slot in self.slots.items()}
