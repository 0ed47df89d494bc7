"""Mutations that know nothing of what they mutate: bytes, and lines of text."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Callable, Sequence

MAX_BYTES = 4 << 20
"""No mutated input grows beyond this: what is wanted is odd inputs, not merely large ones."""

INTEGERS = (
    0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, (1 << 63) - 1, 1 << 63, (1 << 64) - 1,
)  # fmt: skip
NUMBERS = (
    "0", "-1", "1", "255", "65536", "2147483648", "4294967295", "18446744073709551615", "18446744073709551616",
    "9" * 40, "1" + "0" * 400, "9" * 5000, "0x", "0x0", "0xffffffffffffffff", "0x" + "f" * 40,
    "0x" + "f" * 4000, "-0", "1e999", "-1e999", "nan", "inf", "-inf", "1.", ".5", "1_000", "٣", "²", "½", "１２",
    "0b1", "0o7", "1e-400",
)  # fmt: skip
"""Numbers that programs read wrong: too large, of other scripts (some of them digits to str.isdigit() only)."""
STRINGS = (
    "", "\0", "\x1b[31m", "\x1b]0;x\x07", "\r", "\u2028", "\u202e", "\ufeff", "\ud800", "\U000e0041", "\x85",
    "\xa0", "\t", "/", "..", "../../etc/passwd", "-", "--help", "%n%s", "{0}", "{{7*7}}", "$(x)", "`", "|",
    "<script>", "]]>", "&#0;", "A" * 300, "(" * 3000, "[" * 3000, "<" * 3000, "{" * 3000, " " * 70000,
    "a" * 70000, "\n" * 3000, "\\" * 3000, "\"", "'", "#", "://", "@", "=", "==", "~", "^", "None", "null",
    "true", "İ", "ß", "ﬀ", "e\u0301" * 40,
)  # fmt: skip
_NUMBER = re.compile(rb"0x[0-9a-fA-F]{1,16}|\d{1,20}")
_WORD = re.compile(rb"[A-Za-z_][\w.:-]{0,60}")

Pool = Sequence[bytes]


def encode(text: str) -> bytes:
    """As UTF-8; a lone surrogate as the three bytes that a careless writer makes of it."""
    return text.encode("utf-8", "surrogatepass")


def integer(rng: random.Random) -> int:
    """A number near one that matters."""
    return rng.choice(INTEGERS) + rng.choice((-1, 0, 0, 1)) if rng.random() < 0.8 else rng.getrandbits(64)


def _at(data: bytes | bytearray, rng: random.Random) -> int:
    return rng.randrange(len(data) + 1)


def _span(data: bytes | bytearray, rng: random.Random, most: int = 4096) -> tuple[int, int]:
    start = _at(data, rng)
    return start, min(len(data), start + 1 + int(rng.expovariate(1) * rng.choice((1, 8, 64, most / 8))))


def _flip(data: bytearray, rng: random.Random, _pool: Pool) -> bytes:
    for _ in range(rng.choice((1, 1, 2, 8, 32))):
        if data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def _set(data: bytearray, rng: random.Random, _pool: Pool) -> bytes:
    for _ in range(rng.choice((1, 1, 4))):
        if data:
            data[rng.randrange(len(data))] = rng.choice(
                (0, 1, 0x7F, 0x80, 0xFF, 0x20, 0x0A, rng.randrange(256))
            )
    return bytes(data)


def _number(data: bytearray, rng: random.Random, _pool: Pool) -> bytes:
    size, code = rng.choice(((1, "B"), (2, "H"), (4, "I"), (8, "Q")))
    if len(data) >= size:
        struct.pack_into(
            f"<{code}", data, rng.randrange(len(data) - size + 1), integer(rng) % (1 << 8 * size)
        )
    return bytes(data)


def _insert(data: bytearray, rng: random.Random, _pool: Pool) -> bytes:
    at = _at(data, rng)
    return bytes(data[:at]) + rng.randbytes(rng.choice((1, 2, 8, 100))) + bytes(data[at:])


def _remove(data: bytearray, rng: random.Random, _pool: Pool) -> bytes:
    start, end = _span(data, rng)
    return bytes(data[:start] + data[end:])


def _cut(data: bytearray, rng: random.Random, _pool: Pool) -> bytes:
    return bytes(data[: _at(data, rng)])


def _double(data: bytearray, rng: random.Random, _pool: Pool) -> bytes:
    start, end = _span(data, rng)
    times = rng.choice((1, 1, 2, 50))
    return bytes(data[:end] + data[start:end] * times + data[end:])


def _move(data: bytearray, rng: random.Random, _pool: Pool) -> bytes:
    start, end = _span(data, rng)
    piece = bytes(data[start:end])
    del data[start:end]
    at = _at(data, rng)
    return bytes(data[:at]) + piece + bytes(data[at:])


def _splice(data: bytearray, rng: random.Random, pool: Pool) -> bytes:
    other = rng.choice(pool)
    start, end = _span(other, rng)
    at = _at(data, rng)
    keep = at if rng.random() < 0.5 else min(len(data), at + end - start)
    return bytes(data[:at]) + other[start:end] + bytes(data[keep:])


_BYTES: tuple[Callable[[bytearray, random.Random, Pool], bytes], ...] = (
    _flip, _flip, _set, _number, _number, _insert, _remove, _cut, _double, _move, _splice,
)  # fmt: skip


def damage(data: bytes, rng: random.Random, pool: Pool) -> bytes:
    """One to eight mutations of bytes, few more often than many."""
    for _ in range(1 + min(7, int(rng.expovariate(0.8)))):
        data = rng.choice(_BYTES)(bytearray(data), rng, pool)
    return data[:MAX_BYTES]


def _swap_number(data: bytes, rng: random.Random, _pool: Pool) -> bytes:
    return _replace(_NUMBER, data, rng, encode(rng.choice(NUMBERS)))


def _swap_word(data: bytes, rng: random.Random, pool: Pool) -> bytes:
    words = _WORD.findall(rng.choice(pool)[:20000])
    word = rng.choice(words) if words and rng.random() < 0.6 else encode(rng.choice(STRINGS))
    return _replace(_WORD, data, rng, word)


def _replace(pattern: re.Pattern[bytes], data: bytes, rng: random.Random, new: bytes) -> bytes:
    found = list(pattern.finditer(data))
    if not found:
        return data + new
    one = rng.choice(found)
    return data[: one.start()] + new + data[one.end() :]


def _string_in(data: bytes, rng: random.Random, _pool: Pool) -> bytes:
    at = _at(data, rng)
    return data[:at] + encode(rng.choice(STRINGS)) + data[at:]


def _lines(data: bytes, rng: random.Random, pool: Pool) -> bytes:
    """Drop, double, swap, join or borrow lines."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    what = rng.randrange(6)
    if what == 0:
        del lines[at : at + rng.choice((1, 1, 5, 50))]
    elif what == 1:
        lines[at:at] = [lines[at]] * rng.choice((1, 2, 300))
    elif what == 2:
        other = rng.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif what == 3:
        lines[at : at + 2] = [b"".join(lines[at : at + 2])]
    elif what == 4:
        lines.insert(at, rng.choice(rng.choice(pool).split(b"\n")))
    else:
        rng.shuffle(lines)
    return b"\n".join(lines)


def _long_line(data: bytes, rng: random.Random, _pool: Pool) -> bytes:
    """A piece of a line many times over: what makes a careless pattern quadratic."""
    start = _at(data, rng)
    piece = data[start : start + rng.randrange(1, 40)]
    return data[:start] + piece * rng.choice((100, 2000, 20000)) + data[start:]


_TEXTS: tuple[Callable[[bytes, random.Random, Pool], bytes], ...] = (
    _swap_number, _swap_number, _swap_number, _swap_word, _swap_word, _string_in, _string_in, _lines, _lines,
    _lines, _long_line,
)  # fmt: skip


def damage_text(data: bytes, rng: random.Random, pool: Pool, most: int = 256 << 10) -> bytes:
    """One to eight mutations of text, now and then one of bytes; at most ``most`` bytes."""
    for _ in range(1 + min(7, int(rng.expovariate(0.5)))):
        if rng.random() < 0.15:
            data = rng.choice(_BYTES)(bytearray(data), rng, pool)
        else:
            data = rng.choice(_TEXTS)(data, rng, pool)
        data = data[:most]
    return data


def excerpt(data: bytes, rng: random.Random, most: int) -> bytes:
    """At most ``most`` bytes of a fixture, from the start of a line on: short cases are many cases."""
    if len(data) <= most or rng.random() < 0.02:
        return data
    start = data.rfind(b"\n", 0, rng.randrange(len(data) - most // 2)) + 1
    return data[start : start + most]
