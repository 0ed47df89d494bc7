"""The section table of one CUDA ELF image, read in place.

The image is a slice of a mapped dump: it may be 100 MB large and damaged in any way. Nothing is
copied but the header columns and the name table, and every offset is checked before it is used.

Why not pyelftools: it builds a Python object a section and a symbol, 6.5 s for 200,000 symbols. Here a
table is a view of words whose columns come out with one strided slice each: an image of 3,928 sections
opens in 0.4 ms, and a PC among 200,000 symbols is found in 2 ms.
"""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

import struct
import sys
from bisect import bisect_right
from typing import NamedTuple

from crashlab.errors import MalformedCubin
from crashlab.facts.values import EM_CUDA

SHT_SYMTAB, SHT_RELA, SHT_NOBITS, SHT_REL, SHT_SYMTAB_SHNDX = 2, 4, 8, 9, 18
SHF_EXECINSTR, SHF_COMPRESSED = 0x4, 0x800
SHN_LORESERVE, SHN_XINDEX = 0xFF00, 0xFFFF

_HEADER = struct.Struct("<16xHH20xQI6xHHH")
"""e_type, e_machine, e_shoff, e_flags, e_shentsize, e_shnum, e_shstrndx."""
_SECTION = struct.Struct("<IIQQQQIIQQ")
_MAX_NAME = 1 << 16
"""Longest name that is read, in bytes; template names of real kernels reach a few thousand."""
_MAX_TRIES = 1 << 16
"""Occurrences of a section's name in the name table that are looked at."""


class Section(NamedTuple):
    """One row of the section table; ``address`` is 0 for what was not loaded."""

    number: int
    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    entsize: int


def words(view: memoryview) -> memoryview:
    """The bytes of ``view`` as little-endian 64-bit words; a tail shorter than a word is dropped."""
    whole = view[: len(view) & ~7]
    if sys.byteorder == "little":
        return whole.cast("Q")
    from array import array

    swapped = array("Q", bytes(whole))
    swapped.byteswap()
    return memoryview(swapped)


def c_string(table: memoryview, offset: int) -> str | None:
    """The NUL-terminated text at ``offset``; None outside the table.

    A name without terminator ends with its table or after 64 KiB. Bytes that are no UTF-8 are escaped.
    """
    if not 0 <= offset < len(table):
        return None
    step = 256
    while True:
        chunk = bytes(table[offset : offset + step])
        end = chunk.find(b"\0")
        if end >= 0:
            return chunk[:end].decode("utf-8", "backslashreplace")
        if len(chunk) < step or step >= _MAX_NAME:
            return chunk.decode("utf-8", "backslashreplace")
        step *= 8


class Elf:
    """Header and section table of an image. Raises :class:`MalformedCubin` when they cannot be trusted."""

    def __init__(self, view: memoryview) -> None:
        self.view = view if view.format == "B" and view.ndim == 1 else view.cast("B")
        if len(self.view) < 64 or bytes(self.view[:4]) != b"\x7fELF":
            raise MalformedCubin("the code image does not start with an ELF header")
        if self.view[4] != 2 or self.view[5] != 1:
            raise MalformedCubin("the code image is not 64-bit little-endian")
        self.abi = self.view[8]
        header = _HEADER.unpack_from(self.view)
        self.type, machine, start, self.flags, entsize, count, names = header
        if machine != EM_CUDA:
            raise MalformedCubin(f"the code image is for machine {machine}, not CUDA ({EM_CUDA})")
        self._table, self.count, self._names_index = self._locate(start, entsize, count, names)
        self._columns = words(self._table)
        self._types = [word >> 32 for word in self.column(0)]
        self._names: memoryview | None = None
        self._raw_names = b""
        self._by_name_offset: dict[int, int] = {}
        self._code = self._code_ranges()

    def _locate(self, start: int, entsize: int, count: int, names: int) -> tuple[memoryview, int, int]:
        """Where the section table lies; counts too big for the header stand in section 0 (gABI)."""
        if start == 0:
            return self.view[:0], 0, 0
        if entsize != 64 or start > len(self.view) - 64:
            raise MalformedCubin("the section table of a code image lies outside the image")
        first = _SECTION.unpack_from(self.view, start)
        count = count or first[5]
        names = first[6] if names == SHN_XINDEX else names
        if count > (len(self.view) - start) // 64:
            raise MalformedCubin(f"a code image claims {count} sections, which do not fit into it")
        return self.view[start : start + 64 * count], count, names

    def _code_ranges(self) -> tuple[list[int], list[int], list[int], list[int]]:
        """Loaded executable sections by start: starts, ends, indices, and the highest end so far."""
        flags, addresses, sizes = (self._columns[k::8].tolist() for k in (1, 2, 4))
        ranges = sorted(
            (address, address + size, index)
            for index, (flag, address, size) in enumerate(zip(flags, addresses, sizes, strict=True))
            if address and size and flag & SHF_EXECINSTR
        )
        highest, reach = 0, []
        for _, end, _ in ranges:
            highest = max(highest, end)
            reach.append(highest)
        return [r[0] for r in ranges], [r[1] for r in ranges], [r[2] for r in ranges], reach

    def code_section(self, pc: int) -> int | None:
        """Index of the loaded executable section that holds ``pc``; of several, the one starting last."""
        starts, ends, indices, reach = self._code
        at = bisect_right(starts, pc) - 1
        while at >= 0 and reach[at] > pc:
            if ends[at] > pc:
                return indices[at]
            at -= 1
        return None

    def column(self, word: int) -> list[int]:
        """One 64-bit column of the section table (0 name and type, 1 flags, 2 address, …)."""
        values: list[int] = self._columns[word::8].tolist()
        return values

    def section(self, index: int) -> Section:
        """The row at ``index``; MalformedCubin when there is none."""
        if not 0 <= index < self.count:
            raise MalformedCubin(f"a code image refers to section {index} of {self.count}")
        name, kind, flags, address, offset, size, link, info, _, entsize = _SECTION.unpack_from(
            self._table, 64 * index
        )
        text = c_string(self._name_table(), name) or ""
        return Section(index, text, kind, flags, address, offset, size, link, info, entsize)

    def sections(self) -> list[Section]:
        """All rows, for people who want to see them."""
        return [self.section(index) for index in range(self.count)]

    def find(self, name: str) -> Section | None:
        """The first section with that name."""
        if not self._by_name_offset:
            offsets = [word & 0xFFFFFFFF for word in self.column(0)]
            self._by_name_offset = dict(zip(reversed(offsets), range(len(offsets) - 1, -1, -1), strict=True))
            self._raw_names = bytes(self._name_table())
        needle = name.encode("utf-8", "replace") + b"\0"
        at = self._raw_names.find(needle)
        for _ in range(_MAX_TRIES):  # a name is also the tail of others: .debug_line, .rela.debug_line
            if at < 0:
                break
            index = self._by_name_offset.get(at)
            if index is not None:
                return self.section(index)
            at = self._raw_names.find(needle, at + 1)
        return None

    def of_type(self, kind: int) -> list[int]:
        """Indices of the sections of one type."""
        return [index for index, found in enumerate(self._types) if found == kind]

    def data(self, section: Section) -> memoryview:
        """The bytes of a section; empty for one without bytes. MalformedCubin when they are not there."""
        if section.type == SHT_NOBITS:
            return self.view[:0]
        if section.offset > len(self.view) or section.size > len(self.view) - section.offset:
            raise MalformedCubin(f"section {section.name} of a code image lies outside the image")
        return self.view[section.offset : section.offset + section.size]

    def named_data(self, name: str) -> memoryview | None:
        """The bytes of the section with that name; None when absent, empty or compressed."""
        section = self.find(name)
        if section is None or section.flags & SHF_COMPRESSED:
            return None
        return self.data(section) or None

    def _name_table(self) -> memoryview:
        if self._names is None:
            self._names = self.view[:0]  # what the row of the name table itself is named with
            if 0 < self._names_index < self.count:
                self._names = self.data(self.section(self._names_index))
        return self._names
