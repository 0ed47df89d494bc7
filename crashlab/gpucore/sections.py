"""The section table of a GPU core dump, read column by column.

A dump of eight busy GPUs has several million sections (three for each resident thread). Building an
object for each would cost seconds, so the table stays in the file: one strided copy of the low byte
of every ``sh_type`` finds the sections of a kind at memchr speed, and one strided copy of
``sh_link`` finds the children of a table.
"""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

import struct
from collections.abc import Iterator
from typing import NamedTuple

from crashlab.errors import UnreadableDump
from crashlab.facts.values import EM_CUDA
from crashlab.gpucore import layout

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_STRTAB = 3
_NAME_LIMIT = 65536
_CUT_HINT = (
    "The process was probably killed while the driver was still writing. If you kept its output, "
    "'crashlab analyze --log FILE' reads what the driver printed about the fault."
)


class Section(NamedTuple):
    """One section header; ``parent`` and ``row`` are ``sh_link`` and ``sh_info``."""

    number: int
    name_offset: int
    type: int
    address: int
    offset: int
    size: int
    parent: int
    row: int
    entry_size: int

    @property
    def kind(self) -> int | None:
        """The type number of :mod:`crashlab.gpucore.layout`, or None for an ordinary ELF section."""
        return self.type - layout.SECTION_BASE if self.type >= layout.SECTION_BASE else None


class SectionTable:
    """Lookup of sections by kind and by parent over the bytes of a dump."""

    def __init__(self, view: memoryview, file_size: int) -> None:
        self._view = view
        self.file_size = file_size
        offset, self.count, strings = _read_header(view, file_size)
        table = view[offset : offset + self.count * 64]
        self._table = table
        self._low = table[4::64].tobytes()
        self._high = table[7::64].tobytes()
        self._links: bytes | None = None
        self._names = self[strings] if strings < self.count else None

    def __getitem__(self, index: int) -> Section:
        name, kind, _flags, address, offset, size, link, info, _align, entry = _SECTION.unpack_from(
            self._table, index * 64
        )
        return Section(index, name, kind, address, offset, size, link, info, entry)

    def __len__(self) -> int:
        return self.count

    def of_kind(self, kind: int) -> Iterator[Section]:
        """All sections of a kind, in file order."""
        needle, at = bytes((kind,)), -1
        while (at := self._low.find(needle, at + 1)) >= 0:
            if self._high[at] == 0x80:
                section = self[at]
                if section.kind == kind:
                    yield section

    def children(self, parent: int) -> Iterator[Section]:
        """All sections whose ``sh_link`` is ``parent``, in file order."""
        if self._links is None:
            # Four strided copies would be slower than one copy of the column as 32-bit items.
            self._links = self._table.cast("I")[10::16].tobytes()
        needle, at = struct.pack("<I", parent), 0
        while (at := self._links.find(needle, at)) >= 0:
            if at % 4:
                at += 1
                continue
            section = self[at // 4]
            if section.kind is not None:
                yield section
            at += 4

    def name(self, section: Section) -> str:
        """The section's name; empty when its string is out of range."""
        if self._names is None or section.name_offset >= self._names.size:
            return ""
        return read_string(self._view, self._names.offset + section.name_offset, self.file_size)

    def string_table(self) -> Section | None:
        """``.strtab``, which the tables' string fields point into."""
        for index in range(self.count - 1, -1, -1):  # it stands near the end
            section = self[index]
            if section.type == _STRTAB and self.name(section) == ".strtab":
                return section
            if self.count - index > 64:
                break
        at = -1
        while (at := self._low.find(b"\x03", at + 1)) >= 0:
            section = self[at]
            if section.type == _STRTAB and self.name(section) == ".strtab":
                return section
        return None


def read_string(view: memoryview, offset: int, end: int) -> str:
    """A NUL-terminated string, at most 64 KiB, with undecodable bytes replaced."""
    raw = bytes(view[offset : min(end, offset + 256)])
    if b"\0" not in raw and len(raw) == 256:
        raw = bytes(view[offset : min(end, offset + _NAME_LIMIT)])
    return raw.split(b"\0", 1)[0].decode("utf-8", "replace")


def _read_header(view: memoryview, size: int) -> tuple[int, int, int]:
    """Offset, count and string-table index of the section table, or UnreadableDump that says why not."""
    if size == 0:
        raise UnreadableDump("The file is empty.", reason="empty", hint=_CUT_HINT)
    ident = bytes(view[:20])
    if ident[:4] != b"\x7fELF":
        raise UnreadableDump(
            "This is not a GPU core dump: it does not begin with an ELF header.",
            reason="not-elf",
            hint="Give the file that CUDA_COREDUMP_FILE named; logs go to '--log FILE'.",
        )
    if size < _HEADER.size:
        raise UnreadableDump(
            f"Writing was cut short: {size} bytes are less than one ELF header.",
            reason="cut-short",
            hint=_CUT_HINT,
        )
    ident, kind, machine, _v, _entry, _ph, offset, _fl, _eh, _phe, _phn, entry, count, strings = (
        _HEADER.unpack_from(view)
    )
    _check_identity(ident, kind, machine)
    if offset == 0 or offset >= size or offset + 64 > size:
        raise UnreadableDump(
            f"Writing was cut short: the section table should lie at byte {offset:,} of a file that ends at "
            f"{size:,}.",
            reason="cut-short",
            hint=_CUT_HINT,
        )
    if entry != 64:
        raise UnreadableDump(
            f"The ELF header says that a section header has {entry} bytes; it must be 64.", reason="malformed"
        )
    first = _SECTION.unpack_from(view, offset)
    if count == 0:
        count = first[5]
    if strings == 0xFFFF:
        strings = first[6]
    if count == 0:
        raise UnreadableDump("The dump has no sections.", reason="malformed", hint=_CUT_HINT)
    if offset + count * 64 > size:
        raise UnreadableDump(
            f"Writing was cut short: {count:,} section headers from byte {offset:,} do not fit into "
            f"{size:,} bytes.",
            reason="cut-short",
            hint=_CUT_HINT,
        )
    return offset, count, strings


def _check_identity(ident: bytes, kind: int, machine: int) -> None:
    if ident[4] != 2 or ident[5] != 1:
        raise UnreadableDump(
            "This ELF file is not 64-bit little-endian, as every GPU core dump is.", reason="not-gpu-core"
        )
    if machine != EM_CUDA:
        what = "a host (CPU) core dump" if kind == layout.ET_CORE else "an ordinary ELF file"
        raise UnreadableDump(
            f"This is {what} (machine {machine}), not a GPU core dump (machine {EM_CUDA}).",
            reason="not-gpu-core",
            hint="GPU dumps are written only with CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1, to CUDA_COREDUMP_FILE.",
        )
    if kind != layout.ET_CORE:
        raise UnreadableDump(
            "This is CUDA code (a cubin), not a GPU core dump.",
            reason="not-gpu-core",
            hint="Give the dump that the driver wrote; disassemble cubins with nvdisasm.",
        )
