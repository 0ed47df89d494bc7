"""Code images for these tests: built by nvcc, cut out of real dumps, or put together by hand."""

from __future__ import annotations

import lzma
import struct
from functools import lru_cache
from typing import NamedTuple

from crashlab.cubin.image import Cubin
from tests.support import corpus

FOLDER = corpus.DATA / "cubin"
RELOCATED_IMAGE = 0x80000007
HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")


@lru_cache(maxsize=64)
def raw(name: str) -> bytes:
    """An image of tests/data/cubin."""
    return lzma.decompress((FOLDER / f"{name}.cubin.xz").read_bytes())


def cubin(name: str) -> Cubin:
    """The same, opened."""
    return Cubin(memoryview(raw(name)))


def built() -> list[str]:
    """Names of all images that nvcc built."""
    return sorted(path.name.removesuffix(".cubin.xz") for path in FOLDER.glob("*.cubin.xz"))


@lru_cache(maxsize=4)
def relocated(dump: str) -> tuple[Cubin, ...]:
    """The relocated images of a dump."""
    view = memoryview(corpus.raw(dump))
    start, count = struct.unpack_from("<Q", view, 0x28)[0], struct.unpack_from("<H", view, 0x3C)[0]
    rows = [SECTION.unpack_from(view, start + 64 * index) for index in range(count)]
    return tuple(Cubin(view[row[4] : row[4] + row[5]]) for row in rows if row[1] == RELOCATED_IMAGE)


def holding(dump: str, pc: int) -> Cubin | None:
    """The image of a dump that holds a PC."""
    found = [image for image in relocated(dump) if image.contains(pc)]
    assert len(found) <= 1
    return found[0] if found else None


class Part(NamedTuple):
    """A section of an image made by hand; ``data`` as an int is a size without bytes."""

    name: str
    kind: int
    data: bytes | int
    flags: int = 0
    address: int = 0
    link: int = 0
    info: int = 0
    entsize: int = 0


def assemble(parts: list[Part], *, flags: int = 0x5A0D5A, abi: int = 7, wide: bool = False) -> bytes:
    """An image with these sections, numbered from 1; the name table comes last.

    ``wide`` puts the count and the number of the name table into section 0, as gABI has it for
    more than 65,279 sections.
    """
    names = bytearray(b"\0")
    offsets = []
    for name in [part.name for part in parts] + [".shstrtab"]:
        offsets.append(len(names))
        names += name.encode() + b"\0"
    body, rows = bytearray(64), []
    for part, name in zip([*parts, Part(".shstrtab", 3, bytes(names))], offsets, strict=True):
        data = b"" if isinstance(part.data, int) else part.data
        size = part.data if isinstance(part.data, int) else len(data)
        rows.append(
            SECTION.pack(
                name,
                part.kind,
                part.flags,
                part.address,
                len(body),
                size,
                part.link,
                part.info,
                0,
                part.entsize,
            )
        )
        body += data
    count, last = len(rows) + 1, len(rows)
    first = SECTION.pack(0, 0, 0, 0, 0, count if wide else 0, last if wide else 0, 0, 0, 0)
    ident = b"\x7fELF\x02\x01\x01\x33" + bytes([abi]) + bytes(7)
    header = HEADER.pack(
        ident, 2, 190, 1, 0, 0, len(body), flags, 64, 0, 0, 64, 0 if wide else count, 0xFFFF if wide else last
    )
    body[:64] = header
    return bytes(body) + first + b"".join(rows)


def symbol(name: int, section: int, value: int, size: int, *, info: int = 2, other: int = 0) -> bytes:
    """A row of ``.symtab``: a local function unless told otherwise; 0x10 in ``other`` marks a kernel."""
    return struct.pack("<IBBHQQ", name, info, other, section, value, size)
