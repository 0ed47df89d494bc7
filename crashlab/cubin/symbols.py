"""Which function holds a PC: ``.symtab`` of an image, without an object a symbol.

A framework's module has thousands of symbols and a linked one may have hundreds of thousands, but a
PC lies in one ``.text`` section, and only the handful of symbols of that section can cover it. Their
rows are found by searching the column of section numbers for that number.

In a relocated image ``st_value`` is an absolute address; in one as built it is an offset into a
section whose address is 0. ``value - section.address`` is the offset in both.
"""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

import struct
from collections.abc import Iterator
from typing import NamedTuple

from crashlab.cubin.elf import (
    SHN_LORESERVE,
    SHN_XINDEX,
    SHT_SYMTAB,
    SHT_SYMTAB_SHNDX,
    Elf,
    Section,
    c_string,
)
from crashlab.errors import MalformedCubin

STT_FUNC = 2
STO_CUDA_ENTRY = 0x10
"""In ``st_other``: the function is a ``__global__`` entry (LLVM, llvm/BinaryFormat/ELF.h)."""

_SYMBOL = struct.Struct("<IBBHQQ")
_NAME = struct.Struct("<I")
_MAX_IN_SECTION = 1 << 16
"""Symbols of one section that are looked at; real functions have a few hundred."""


class FunctionSymbol(NamedTuple):
    """One function of an image. ``start`` is absolute when the image is relocated; sizes in bytes."""

    mangled: str
    start: int
    size: int
    entry: bool
    section: int


class SymbolHit(NamedTuple):
    """The functions around a PC.

    ``function`` is the innermost one and ``offset`` the distance of the PC from its start. ``kernel``
    is the entry that encloses it, None when the function has a section of its own. ``section`` is the
    name of the ``.text`` section. ``guessed`` marks a function known by its section's name only.
    """

    function: FunctionSymbol
    offset: int
    kernel: FunctionSymbol | None
    section: str
    guessed: bool = False


class Symbols:
    """The symbol table of one image; an image without one has no symbols."""

    def __init__(self, elf: Elf) -> None:
        self._elf = elf
        self._rows = self._names = elf.view[:0]
        self._wide: memoryview | None = None
        self._narrow: bytes | None = None
        tables = elf.of_type(SHT_SYMTAB)
        if tables:
            self._open(elf.section(tables[0]))
        self.count = len(self._rows) // _SYMBOL.size

    def _open(self, table: Section) -> None:
        if table.entsize not in (0, _SYMBOL.size):
            raise MalformedCubin(f"symbols of {table.entsize} bytes in a code image")
        rows = self._elf.data(table)
        self._rows = rows[: len(rows) - len(rows) % _SYMBOL.size]
        self._names = self._elf.data(self._elf.section(table.link))
        for index in self._elf.of_type(SHT_SYMTAB_SHNDX):
            wide = self._elf.section(index)
            if wide.link == table.number:
                self._wide = self._elf.data(wide)

    def indices_in(self, section: int) -> list[int]:
        """Row numbers of all symbols, of any type, that belong to a section.

        200,000 symbols take 1.7 ms here, 31 ms through ``struct.iter_unpack``.
        """
        if section >= SHN_LORESERVE:
            haystack, needle = bytes(self._wide or b""), struct.pack("<I", section)
        else:
            if self._narrow is None:  # every twelfth 16-bit unit is an st_shndx
                self._narrow = self._rows.cast("H")[3::12].tobytes()
            haystack, needle = self._narrow, struct.pack("<H", section)
        found: list[int] = []
        width, at = len(needle), haystack.find(needle)
        while at >= 0:
            if at % width == 0:
                found.append(at // width)
            at = haystack.find(needle, at + 1)
            if len(found) > _MAX_IN_SECTION:
                raise MalformedCubin(
                    f"section {section} of a code image has more than {_MAX_IN_SECTION} symbols"
                )
        return [index for index in found if index < self.count]

    def row(self, index: int) -> tuple[int, int, int, int, int, int]:
        """st_name, st_info, st_other, section, st_value, st_size. MalformedCubin when out of range."""
        if not 0 <= index < self.count:
            raise MalformedCubin(f"a code image refers to symbol {index} of {self.count}")
        name, info, other, section, value, size = _SYMBOL.unpack_from(self._rows, index * _SYMBOL.size)
        if section == SHN_XINDEX and self._wide is not None and 4 * index + 4 <= len(self._wide):
            (section,) = struct.unpack_from("<I", self._wide, 4 * index)
        return name, info, other, section, value, size

    def name(self, offset: int) -> str:
        """The text at an offset of the symbol name table; empty outside it."""
        return c_string(self._names, offset) or ""

    def function(self, index: int) -> FunctionSymbol | None:
        """Row ``index`` when it is a defined function with a name."""
        name, info, other, section, value, size = self.row(index)
        if info & 0xF != STT_FUNC or not 0 < section < self._elf.count or not (text := self.name(name)):
            return None
        return FunctionSymbol(text, value, size, bool(other & STO_CUDA_ENTRY), section)

    def functions(self) -> Iterator[FunctionSymbol]:
        """All defined functions in table order; a Python object each, so not for lookups."""
        for index in range(self.count):
            found = self.function(index)
            if found is not None:
                yield found

    def kernels(self) -> Iterator[FunctionSymbol]:
        """All defined ``__global__`` entries in table order."""
        return (function for function in self.functions() if function.entry)

    def kernel_count(self) -> int:
        """How many ``__global__`` entries the table has, without naming them."""
        units = self._rows.cast("H")
        kinds = units[2::12].tobytes()  # st_info and st_other of every row
        defined = units[3::12].tolist()  # st_shndx
        return sum(
            1
            for info, other, section in zip(kinds[0::2], kinds[1::2], defined, strict=True)
            if info & 0xF == STT_FUNC and other & STO_CUDA_ENTRY and section
        )

    def find(self, mangled: str) -> FunctionSymbol | None:
        """The first defined function of that exact name; 200,000 symbols take some 20 ms."""
        if not mangled:
            return None
        needle, names = mangled.encode("utf-8", "replace") + b"\0", bytes(self._names)
        for index in range(self.count):
            (offset,) = _NAME.unpack_from(self._rows, index * _SYMBOL.size)
            if names.startswith(needle, offset):
                found = self.function(index)
                if found is not None:
                    return found
        return None

    def at(self, section: Section, offset: int) -> SymbolHit:
        """The functions around the instruction ``offset`` bytes into a ``.text`` section."""
        candidates = [f for f in map(self.function, self.indices_in(section.number)) if f is not None]
        place = section.address + offset
        covering = [f for f in candidates if f.start <= place < f.start + f.size]
        if not covering:
            return self._by_section_name(section, offset, candidates)
        # Smallest first; of equals (aliases) the device function, so that the kernel stays the outer one.
        covering.sort(key=lambda f: (f.size, f.entry))
        kernel = next((f for f in covering if f.entry), None)
        return SymbolHit(covering[0], place - covering[0].start, kernel, section.name)

    def _by_section_name(self, section: Section, offset: int, candidates: list[FunctionSymbol]) -> SymbolHit:
        """No symbol covers the place (padding, or a stripped image): the section is named for its function.

        Only kernels have a bank of parameters, ``.nv.constant0.NAME``.
        """
        name = section.name.removeprefix(".text.")
        owner = next((f for f in candidates if f.mangled == name), None)
        if owner is None:
            entry = self._elf.find(f".nv.constant0.{name}") is not None
            owner = FunctionSymbol(name, section.address, section.size, entry, section.number)
        return SymbolHit(
            owner, section.address + offset - owner.start, owner if owner.entry else None, section.name, True
        )
