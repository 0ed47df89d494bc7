"""What a bad address looks like by its digits alone: possibilities that the numbers allow and nothing proves."""

from __future__ import annotations

import struct

_PAGE = 4096
_MALLOC_HEADER = 16
_PROGRAM = (0x55, 0x56)
_DEVICE_LIKE = (0x7E, 0x7F)
_STACK_FLOOR = 0x7FFC_0000_0000
_USER_TOP = 1 << 47
_SMALL = 1 << 16
_ORDINARY = (2.0**-20, 2.0**20)


def host_pointer(address: int, base: int | None = None) -> str | None:
    """Why an address, or the pointer ``base`` that it was computed from, looks like host memory.

    The patterns are those of Linux on 64-bit machines: programs and their heap at 0x55… and 0x56…, the
    stack below 2^47, and malloc's large blocks 16 bytes behind the start of a page, where device
    allocations begin at multiples of 256. Other host memory lies among device memory and is not told apart.
    """
    for value in (address, base):
        if value is None or value >= _USER_TOP:
            continue
        if value >> 40 in _PROGRAM:
            return "it looks like a host pointer: programs and their heap lie at 0x55… and 0x56…"
        if value >= _STACK_FLOOR:
            return "it looks like a host pointer: the host's stack lies that close below 2^47"
    if base is not None and base < _USER_TOP and base % _PAGE == _MALLOC_HEADER:
        return (
            "it looks like a host pointer: malloc's large blocks begin 16 bytes behind a page, "
            "device allocations at multiples of 256"
        )
    return None


def packed(address: int) -> str | None:
    """Two small 32-bit integers or two ordinary floats that a 64-bit value would be made of."""
    low, high = address & 0xFFFF_FFFF, address >> 32
    if 0 < high < _SMALL and 0 < low < _SMALL and high >> 8 not in (*_PROGRAM, *_DEVICE_LIKE):
        return f"its two halves read as the integers {low:,} and {high:,}"
    first, second = (struct.unpack("<f", half.to_bytes(4, "little"))[0] for half in (low, high))
    if all(_ORDINARY[0] <= abs(value) <= _ORDINARY[1] for value in (first, second)):
        return f"its two halves read as the floats {first:g} and {second:g}"
    return None
