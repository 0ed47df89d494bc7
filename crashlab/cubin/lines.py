"""Source positions of instructions, from ``.debug_line`` (``-lineinfo``, ``-G``, Triton).

A module's line table has one sequence a function, and a PC needs one of them. Which one says the
relocation of its DW_LNE_set_address operand: symbol, hence section. Drivers of release 580 have
patched the operands of loaded functions, others leave 0; the relocations are there in both cases.
Without them the absolute operands themselves are searched. Only sequences of the section asked for
are decoded.
"""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

import struct
from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from crashlab.cubin.elf import SHT_REL, SHT_RELA, Elf, Section
from crashlab.cubin.lineprogram import Row, Sequence, Strings, Unit, read_unit, string_at, unit_extent
from crashlab.cubin.symbols import Symbols
from crashlab.errors import MalformedCubin
from crashlab.facts import InlineFrame, Source

_MAX_DEPTH = 64
"""Longest inline chain that is followed."""
_MAX_STEPS = 1 << 20
"""Opcodes that are run for one image, 0.7 s; the 11,000 instructions of a large Triton kernel need 12,000."""
_MAX_FUNCTIONS = 1 << 18
"""Most sequences of one line table, one a function, that are looked through."""
_MAX_UNITS = 1 << 16
"""Most compilation units; ptxas writes one, a linked module has one for each object file."""
_SET_ADDRESS = b"\x00\x09\x02"
"""The extended opcode DW_LNE_set_address with its 8-byte operand, as it stands in a program."""
_RELA, _REL = struct.Struct("<QQq"), struct.Struct("<QQ")
_SEQUENCE_END = b"\x00\x01\x01"


class LineRange(NamedTuple):
    """Instructions of one source line: ``start`` and ``end`` are byte offsets into the section."""

    start: int
    end: int
    file: str
    line: int


class _Placed:
    """A decoded sequence: ``starts`` are the offsets of its rows in the section."""

    __slots__ = ("rows", "starts", "unit")

    def __init__(self, base: int, rows: list[Row], unit: Unit) -> None:
        self.starts = [base + row[0] for row in rows]
        self.rows, self.unit = rows, unit


class Lines:
    """The line table of one image; empty when it has none."""

    def __init__(self, elf: Elf, symbols: Symbols) -> None:
        self._elf, self._symbols = elf, symbols
        table = elf.find(".debug_line")
        self._index = table.number if table is not None else -1
        self._data = bytes(elf.named_data(".debug_line") or b"")
        self._strings = Strings(
            bytes(elf.named_data(".debug_str") or b""), bytes(elf.named_data(".debug_line_str") or b"")
        )
        self._extents: list[int] = []
        self._units: dict[int, Unit] = {}
        self._tables: list[Section] | None = None
        self._steps_left = _MAX_STEPS
        self._placed: dict[int, list[_Placed]] = {}

    def source(self, section: Section, offset: int) -> Source | None:
        """The source position of the instruction ``offset`` bytes into a ``.text`` section.

        ``inlined`` lists the call sites outwards; the ``function`` of each is the mangled name of the
        function that was inlined *there* (so the first one's is the function the position lies in, and
        the last call site lies in the symbol's own function). None without a line for the place.
        """
        for placed in self._of(section):
            at = bisect_right(placed.starts, offset) - 1
            if 0 <= at < len(placed.rows) - 1:
                return self._chain(placed, at)
        return None

    def ranges(self, section: Section) -> tuple[LineRange, ...]:
        """All source lines of a section in address order; places without a line are left out."""
        found = []
        for placed in self._of(section):
            for (start, end), row in zip(pairwise(placed.starts), placed.rows, strict=False):
                file, line = _position(placed.unit, row)
                if start < end and file is not None and line is not None:
                    found.append(LineRange(start, end, file, line))
        return tuple(sorted(found))

    def _chain(self, placed: _Placed, at: int) -> Source | None:
        row = placed.rows[at]
        file, line = _position(placed.unit, row)
        if file is None or line is None:
            return None
        frames: list[InlineFrame] = []
        while 0 < row[3] <= len(placed.rows) and len(frames) < _MAX_DEPTH:
            name = string_at(self._strings.debug_str, row[4])
            row = placed.rows[row[3] - 1]
            frames.append(InlineFrame(*_position(placed.unit, row), name))
        return Source(file, line, tuple(frames))

    def _of(self, section: Section) -> list[_Placed]:
        """The decoded sequences of a section, by their starts."""
        known = self._placed.get(section.number)
        if known is None:
            known = self._placed[section.number] = self._decode(section) if self._data else []
        return known

    def _decode(self, section: Section) -> list[_Placed]:
        bases = self._relocated(section) or self._absolute(section)
        units: dict[int, tuple[Unit, list[int]]] = {}
        for operand_at in sorted(bases):
            unit = self._unit_of(operand_at)
            units.setdefault(unit.program, (unit, []))[1].append(operand_at)
        found = []
        for unit, operands in units.values():
            for sequence in self._sequences(unit, operands):
                base = bases.get(sequence.operand_at) if sequence.operand_at is not None else None
                if base is not None:
                    found.append(_Placed(base, sequence.rows, unit))
        ordered = [placed for placed in found if placed.starts == sorted(placed.starts)]
        return sorted(ordered, key=lambda placed: placed.starts[:1])

    def _sequences(self, unit: Unit, operands: list[int]) -> Iterator[Sequence]:
        """The sequences of a unit that hold the given DW_LNE_set_address operands, and maybe others.

        ptxas begins every sequence with that opcode, so that each can be run by itself. When the bytes
        before one are not the end of another sequence, registers were set first, and the unit is run
        from its start.
        """
        starts = [operand_at - len(_SET_ADDRESS) for operand_at in operands]
        follow = not all(self._begins_sequence(unit, start) for start in starts)
        if follow:
            starts = [unit.program]
        at = 0
        for start in starts:
            if start < at:  # inside the sequence before: the relocations lie
                continue
            at = start
            while at < unit.end:
                sequence = Sequence(self._data, unit, at, self._steps_left)
                self._steps_left -= sequence.steps
                at = sequence.end
                yield sequence
                if not follow:
                    break

    def _begins_sequence(self, unit: Unit, start: int) -> bool:
        before = self._data[max(start - len(_SEQUENCE_END), 0) : start]
        return start == unit.program or (start > unit.program and before == _SEQUENCE_END)

    def _relocated(self, section: Section) -> dict[int, int]:
        """By position of the operand: offset in the section that the relocation gives it."""
        wanted = set(self._symbols.indices_in(section.number))
        found: dict[int, int] = {}
        for table in self._relocations():
            layout = _RELA if table.type == SHT_RELA else _REL
            data = self._elf.data(table)
            if len(data) > _MAX_FUNCTIONS * layout.size:
                raise MalformedCubin("the line table of a code image has too many relocations")
            for place, info, *addend in layout.iter_unpack(data[: len(data) - len(data) % layout.size]):
                if info >> 32 in wanted:
                    value = self._symbols.row(info >> 32)[4] - section.address
                    found[place] = value + (addend[0] if addend else self._implicit(section, place, value))
        return found

    def _relocations(self) -> list[Section]:
        """The relocation tables of ``.debug_line``."""
        if self._tables is None:
            numbers = (*self._elf.of_type(SHT_RELA), *self._elf.of_type(SHT_REL))
            tables = map(self._elf.section, numbers)
            self._tables = [table for table in tables if table.info == self._index]
        return self._tables

    def _implicit(self, section: Section, place: int, value: int) -> int:
        """REL: the addend is the operand, unless the driver has already put the address there."""
        operand = int.from_bytes(self._data[place : place + 8], "little")
        if section.address and section.address <= operand < section.address + section.size:
            return operand - section.address - value
        return operand

    def _absolute(self, section: Section) -> dict[int, int]:
        """Operands that are addresses inside a loaded section."""
        found: dict[int, int] = {}
        at = self._data.find(_SET_ADDRESS) if section.address else -1
        while at >= 0:
            operand = int.from_bytes(self._data[at + 3 : at + 11], "little")
            if section.address <= operand < section.address + section.size:
                found[at + 3] = operand - section.address
                if len(found) > _MAX_FUNCTIONS:
                    raise MalformedCubin("the line table of a code image has too many sequences")
            at = self._data.find(_SET_ADDRESS, at + 1)
        return found

    def _unit_of(self, position: int) -> Unit:
        """The unit that holds a place of the line table; headers are read on first use."""
        if not self._extents:
            start = 0
            while start < len(self._data) and len(self._extents) < _MAX_UNITS:
                _, end, _ = unit_extent(self._data, start)
                self._extents.append(start)
                start = end
            self._extents.append(start)
        at = bisect_right(self._extents, position) - 1
        if not 0 <= at < len(self._extents) - 1:
            raise MalformedCubin("a relocation names a place outside the line table of a code image")
        start = self._extents[at]
        if start not in self._units:
            self._units[start] = read_unit(self._data, start, self._strings)
        return self._units[start]


def _position(unit: Unit, row: Row) -> tuple[str | None, int | None]:
    """File and line of a row; line 0 means that the instruction belongs to none."""
    _, file, line, _, _ = row
    return unit.path(file), line if line > 0 else None
