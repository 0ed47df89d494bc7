"""Code of real cubins: out of shared libraries (fat binaries), wheels, cubin files and GPU core dumps.

Needs numpy; lz4 and zstandard for compressed fat binaries.
"""

from __future__ import annotations

import mmap
import random
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_FATBIN_MAGIC = struct.pack("<I", 0xBA55ED50)
_ELF_ENTRY, _ELF_MAGIC = 2, b"\x7fELF"
_FLAG_LZ4, _FLAG_ZSTD = 0x2000, 0x8000
_ET_CORE = 4
_CUDBG_ELF_IMAGE = 0x80000007


class Code(NamedTuple):
    """One executable section of a cubin; ``base`` is its address (0 in an unlinked cubin)."""

    sm: int
    name: str
    base: int
    code: bytes


class _Entry(NamedTuple):
    flags: int
    size: int
    payload: bytes


def _fatbin_entries(data: bytes | mmap.mmap) -> Iterator[_Entry]:
    position = data.find(_FATBIN_MAGIC)
    while position >= 0:
        _, header, size = (
            struct.unpack_from("<HHQ", data, position + 4) if position + 16 <= len(data) else (0, 0, 0)
        )
        if header != 16 or position + 16 + size > len(data):
            position = data.find(_FATBIN_MAGIC, position + 4)
            continue
        at, end = position + 16, position + 16 + size
        while at + 64 <= end:
            kind, _, head, padded = struct.unpack_from("<HHIQ", data, at)
            (packed,) = struct.unpack_from("<I", data, at + 16)
            flags, _, unpacked = struct.unpack_from("<QQQ", data, at + 40)
            if not 32 <= head <= 4096:
                break
            if kind == _ELF_ENTRY:
                yield _Entry(flags, unpacked, data[at + head : at + head + (packed or padded)])
            at += head + padded
        position = data.find(_FATBIN_MAGIC, max(end, position + 16))


def _unpack(entry: _Entry) -> bytes:
    if entry.flags & _FLAG_ZSTD:
        import zstandard

        return bytes(zstandard.ZstdDecompressor().decompress(entry.payload, max_output_size=entry.size))
    if entry.flags & _FLAG_LZ4:
        import lz4.block

        return bytes(lz4.block.decompress(entry.payload, uncompressed_size=entry.size))
    return entry.payload


def _sections(elf: bytes) -> Iterator[tuple[str, int, int, int, bytes]]:
    """Yields (name, type, flags, address, content)."""
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    strings = struct.unpack_from("<IIQQQQ", elf, table + names * size)[4]
    for i in range(count):
        name, kind, flags, address, offset, length = struct.unpack_from("<IIQQQQ", elf, table + i * size)
        end = elf.index(b"\0", strings + name)
        content = b"" if kind == 8 else elf[offset : offset + length]
        yield elf[strings + name : end].decode(), kind, flags, address, content


def cubin_code(elf: bytes) -> Iterator[Code]:
    """Yields the executable sections of one cubin."""
    if elf[:4] != _ELF_MAGIC:
        return
    (flags,) = struct.unpack_from("<I", elf, 0x30)
    sm = flags >> 8 & 0xFF if elf[8] >= 8 else flags & 0xFF
    for name, kind, section_flags, address, content in _sections(elf):
        if kind == 1 and section_flags & 4 and content and len(content) % 16 == 0:
            yield Code(sm, name, address, content)


def images(path: Path, seed: int = 1) -> Iterator[bytes]:
    """Yields every cubin in a file, in random order (seeded), so that a prefix is a fair sample."""
    if path.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(path) as wheel:
            names = [name for name in wheel.namelist() if name.endswith((".cubin", ".so")) or ".so." in name]
            random.Random(seed).shuffle(names)
            for name in names:
                yield from _images_of(wheel.read(name), seed)
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield from _images_of(data, seed)


def _images_of(data: bytes | mmap.mmap, seed: int) -> Iterator[bytes]:
    if data[:4] == _ELF_MAGIC and struct.unpack_from("<H", data, 18)[0] == 190:
        if struct.unpack_from("<H", data, 16)[0] != _ET_CORE:
            yield bytes(data)
            return
        for _, kind, _, _, content in _sections(bytes(data)):
            if kind == _CUDBG_ELF_IMAGE:
                yield content
        return
    entries = list(_fatbin_entries(data))
    random.Random(seed).shuffle(entries)
    for entry in entries:
        yield _unpack(entry)


def collect(
    folder: Path,
    files: list[Path],
    only: frozenset[int] = frozenset(),
    limit: int = 25 << 20,
    rare: int = 1500,
) -> None:
    """Writes the distinct instructions of each architecture to ``folder/allSM.npy`` (low, high words).

    ``only`` names architectures (70); without any, all are taken.
    Of each file at most ``limit`` bytes of code an architecture are taken whole; of the rest only
    instructions whose opcode has fewer than ``rare`` distinct words so far. Control fields are cleared,
    reuse flags kept.
    """
    import numpy as np

    keep = np.uint64(~(((1 << 17) - 1) << 41) & (1 << 64) - 1)
    pair = np.dtype([("low", "<u8"), ("high", "<u8")])
    found: dict[int, list[np.ndarray]] = {}
    counts: dict[int, np.ndarray] = {}
    for path in files:
        used: dict[int, int] = {}
        for image in images(path):
            for part in cubin_code(image):
                if only and part.sm not in only:
                    break
                words = np.frombuffer(part.code, "<u8").reshape(-1, 2)
                seen = counts.setdefault(part.sm, np.zeros(4096, np.int64))
                if used.get(part.sm, 0) > limit:
                    words = words[seen[(words[:, 0] & np.uint64(0xFFF)).astype(np.intp)] < rare]
                    if not len(words):
                        continue
                used[part.sm] = used.get(part.sm, 0) + len(part.code)
                words = words.copy()
                words[:, 1] &= keep
                distinct = np.unique(words.view(pair).ravel())
                seen += np.bincount((distinct["low"] & np.uint64(0xFFF)).astype(np.intp), minlength=4096)
                mine = found.setdefault(part.sm, [])
                mine.append(distinct)
                if len(mine) > 500:
                    found[part.sm] = [np.unique(np.concatenate(mine))]
    folder.mkdir(parents=True, exist_ok=True)
    for sm, parts in found.items():
        np.save(folder / f"all{sm}.npy", np.unique(np.concatenate(parts)).view("<u8").reshape(-1, 2))
