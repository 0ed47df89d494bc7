"""Damage real dumps in the ways that matter: flips, cuts, lying counts, circles, overlaps, lost terminators."""

from __future__ import annotations

import contextlib
import random
import struct
from collections.abc import Callable

Mutation = Callable[[bytearray, random.Random], bytearray]


def _table(data: bytearray) -> tuple[int, int]:
    offset, count = struct.unpack_from("<Q", data, 0x28)[0], struct.unpack_from("<H", data, 0x3C)[0]
    return offset, count


def _some_header(data: bytearray, rng: random.Random) -> int:
    offset, count = _table(data)
    return offset + 64 * rng.randrange(max(1, count))


def flip_bits(data: bytearray, rng: random.Random) -> bytearray:
    """1 to 64 random bits anywhere."""
    for _ in range(rng.choice((1, 2, 8, 64))):
        at = rng.randrange(len(data))
        data[at] ^= 1 << rng.randrange(8)
    return data


def flip_in_tables(data: bytearray, rng: random.Random) -> bytearray:
    """Random bits in the section headers and in the ELF header."""
    offset, count = _table(data)
    for _ in range(rng.choice((1, 4, 16))):
        start, end = (0, 64) if rng.random() < 0.1 else (offset, offset + 64 * count)
        data[rng.randrange(start, end)] ^= 1 << rng.randrange(8)
    return data


def cut_at_boundary(data: bytearray, rng: random.Random) -> bytearray:
    """End the file at a section's start or end, or one byte beside it."""
    header = _some_header(data, rng)
    offset, size = struct.unpack_from("<QQ", data, header + 0x18)
    at = offset + rng.choice((0, size)) + rng.choice((-1, 0, 1))
    return data[: max(0, min(at, len(data)))]


def cut_but_keep_table(data: bytearray, rng: random.Random) -> bytearray:
    """Drop the middle and move the table forward, so that sections point past the end."""
    offset, count = _table(data)
    table = data[offset : offset + 64 * count]
    keep = rng.randrange(64, max(65, offset))
    out = data[:keep] + table
    struct.pack_into("<Q", out, 0x28, keep)
    return out


def lying_number(data: bytearray, rng: random.Random) -> bytearray:
    """An absurd size, offset, entry size, link, row or count."""
    value = rng.choice((0, 1, 0xFFFF, 0xFFFFFFFF, 1 << 40, (1 << 64) - 1, 1 << 63, len(data), len(data) - 1))
    if rng.random() < 0.1:
        struct.pack_into("<H", data, rng.choice((0x3A, 0x3C, 0x3E)), value & 0xFFFF)
        return data
    header = _some_header(data, rng)
    field, code = rng.choice(
        ((0, "I"), (4, "I"), (0x18, "Q"), (0x20, "Q"), (0x28, "I"), (0x2C, "I"), (0x38, "Q"))
    )
    struct.pack_into(f"<{code}", data, header + field, value & (0xFFFFFFFF if code == "I" else (1 << 64) - 1))
    return data


def circle(data: bytearray, rng: random.Random) -> bytearray:
    """Tables that are each other's parents."""
    offset, count = _table(data)
    a, b = rng.randrange(count), rng.randrange(count)
    struct.pack_into("<I", data, offset + 64 * a + 0x28, b)
    struct.pack_into("<I", data, offset + 64 * b + 0x28, a)
    return data


def overlap(data: bytearray, rng: random.Random) -> bytearray:
    """One section laid over another."""
    offset, count = _table(data)
    a, b = rng.randrange(count), rng.randrange(count)
    data[offset + 64 * a + 0x18 : offset + 64 * a + 0x28] = data[
        offset + 64 * b + 0x18 : offset + 64 * b + 0x28
    ]
    return data


def wrong_type(data: bytearray, rng: random.Random) -> bytearray:
    """A section that claims to be of another kind."""
    struct.pack_into("<I", data, _some_header(data, rng) + 4, 0x80000000 + rng.randrange(0, 28))
    return data


def no_terminators(data: bytearray, rng: random.Random) -> bytearray:
    """String tables without a single NUL."""
    offset, count = _table(data)
    for index in range(count):
        kind, at, size = (
            struct.unpack_from("<I", data, offset + 64 * index + 4)[0],
            *struct.unpack_from("<QQ", data, offset + 64 * index + 0x18),
        )
        if kind == 3 and at + size <= len(data) and rng.random() < 0.7:
            data[at : at + size] = data[at : at + size].replace(b"\0", b"A")
    return data


def damage_images(data: bytearray, rng: random.Random) -> bytearray:
    """Bits flipped inside the module images: symbol tables, line tables, notes."""
    offset, count = _table(data)
    images = []
    for index in range(count):
        header = offset + 64 * index
        if struct.unpack_from("<I", data, header + 4)[0] == 0x80000007:
            images.append(struct.unpack_from("<QQ", data, header + 0x18))
    images = [(at, size) for at, size in images if size and at + size <= len(data)]
    if not images:
        return flip_bits(data, rng)
    at, size = rng.choice(images)
    for _ in range(rng.choice((1, 8, 64))):
        spot = at + rng.randrange(size)
        data[spot] = rng.randrange(256)
    return data


def damage_rows(data: bytearray, rng: random.Random) -> bytearray:
    """Random words in the tables of warps, lanes, SMs, grids, modules."""
    offset, count = _table(data)
    for _ in range(rng.choice((1, 4, 32))):
        header = offset + 64 * rng.randrange(count)
        kind = struct.unpack_from("<I", data, header + 4)[0] - 0x80000000
        at, size = struct.unpack_from("<QQ", data, header + 0x18)
        if 8 <= kind <= 23 and size >= 4 and at + size <= len(data):
            struct.pack_into(
                "<I",
                data,
                at + rng.randrange(size // 4) * 4,
                rng.choice((0, 1, 0xFFFFFFFF, rng.getrandbits(32))),
            )
    return data


MUTATIONS: tuple[Mutation, ...] = (
    flip_bits, flip_in_tables, cut_at_boundary, cut_but_keep_table, lying_number, circle, overlap, wrong_type,
    no_terminators, damage_images, damage_rows,
)  # fmt: skip


def mutate(data: bytes, seed: int) -> bytes:
    """One damaged copy, the same for the same seed; one in four is damaged twice."""
    rng = random.Random(seed)
    out = rng.choice(MUTATIONS)(bytearray(data), rng)
    if rng.random() < 0.25 and len(out) > 4096:
        with contextlib.suppress(struct.error, ValueError, IndexError, OverflowError):  # damaged too much
            out = rng.choice(MUTATIONS)(out, rng)
    return bytes(out)
