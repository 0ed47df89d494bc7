"""Numbers of an instruction word in the spelling of nvdisasm: integers, branch targets and floats."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache

Formatter = Callable[[int, int], str]  # (instruction word, its address) -> text
Segment = tuple[int, int, int]  # (lowest bit in the word, width, position in the value)

# nvdisasm leaves fixed notation from here on: 811685888 is printed in full, 1019215872 is not.
_EXPONENT_FROM = 1e9


def gather(word: int, segments: tuple[Segment, ...]) -> int:
    """Returns the unsigned value whose bits lie in ``segments`` of the word."""
    value = 0
    for low, width, position in segments:
        value |= ((word >> low) & ((1 << width) - 1)) << position
    return value


def _number_text(value: float) -> str:
    """Returns ``value``, which is no NaN, as nvdisasm prints a float operand."""
    if value in (float("inf"), float("-inf")):
        return "+INF " if value > 0 else "-INF "
    if value == 0:
        return "-0.0 " if struct.pack(">d", value)[0] & 0x80 else "0"
    return f"{value:.20e}" if abs(value) >= _EXPONENT_FROM else f"{value:.20g}"


def _nan_aware(bits: int, width: int, mantissa: int, value: float) -> str:
    """Formats ``value``; -0, infinities and NaN, told apart by ``bits``, end in a blank."""
    exponent = (1 << (width - 1 - mantissa)) - 1
    if (bits >> mantissa) & exponent == exponent and bits & ((1 << mantissa) - 1):
        sign = "-" if bits >> (width - 1) else "+"
        return f"{sign}{'Q' if bits >> (mantissa - 1) & 1 else 'S'}NAN "
    return _number_text(value)


def f16_text(bits: int) -> str:
    """Returns a 16-bit IEEE half as text."""
    return _nan_aware(bits, 16, 10, struct.unpack("<e", struct.pack("<H", bits))[0])


def bf16_text(bits: int) -> str:
    """Returns a bfloat16 (the upper half of a float) as text."""
    return _nan_aware(bits, 16, 7, struct.unpack("<f", struct.pack("<I", bits << 16))[0])


def f32_text(bits: int) -> str:
    """Returns a 32-bit IEEE float as text."""
    return _nan_aware(bits, 32, 23, struct.unpack("<f", struct.pack("<I", bits))[0])


def f64_high_text(bits: int) -> str:
    """Returns the IEEE double whose upper 32 bits are ``bits`` and whose lower ones are 0."""
    return _nan_aware(bits, 32, 20, struct.unpack("<d", struct.pack("<Q", bits << 32))[0])


FLOAT_KINDS: dict[str, Callable[[int], str]] = {
    "f16": f16_text,
    "bf16": bf16_text,
    "f32": f32_text,
    "f64": f64_high_text,
}


def signed(value: int, bits: int) -> int:
    """Returns the two's-complement reading of the low ``bits`` of ``value``."""
    return value - (1 << bits) if value >> (bits - 1) else value


def value_bits(segments: tuple[Segment, ...]) -> int:
    """Returns how many bits the gathered value has, its scale included."""
    return max(position + width for _, width, position in segments)


def formatter(kind: str, segments: tuple[Segment, ...]) -> Formatter:
    """Returns the function that prints one slot.

    ``kind`` is ``hex``, ``shex`` (signed), ``target`` (signed, relative to the next instruction), a
    name of :data:`FLOAT_KINDS`, or the prefix of a register name (``R``, ``UR``, ``P``, ``B``, ...),
    with ``~`` where the number is stored inverted and ``+1`` where the next register is meant.
    """
    bits = value_bits(segments)
    if kind == "hex":
        return lambda word, pc: hex(gather(word, segments))
    if kind == "shex":
        return lambda word, pc: hex(signed(gather(word, segments), bits))
    if kind == "target":
        return lambda word, pc: hex(pc + 16 + signed(gather(word, segments), bits))
    if kind in FLOAT_KINDS:
        text = FLOAT_KINDS[kind]
        return lambda word, pc: text(gather(word, segments))
    flip = (1 << bits) - 1 if kind[-1] == "~" else 0
    plus = 1 if kind.endswith("+1") else 0
    prefix = kind.removesuffix("~").removesuffix("+1")
    if len(segments) == 1 and bits <= 8:
        low, mask = segments[0][0], (1 << segments[0][1]) - 1
        names = _names(prefix, flip, plus, mask + 1)
        return lambda word, pc: names[(word >> low) & mask]
    return lambda word, pc: f"{prefix}{(gather(word, segments) ^ flip) + plus}"


@cache
def _names(prefix: str, flip: int, plus: int, count: int) -> tuple[str, ...]:
    """Returns the names of all registers of a kind: thousands of slots share a few dozen such rows."""
    return tuple(f"{prefix}{(number ^ flip) + plus}" for number in range(count))
