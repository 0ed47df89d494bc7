"""Names of GPU exceptions as debuggers of all years print them → the code in the dump.

The codes are those of the debugger API (CUDBGException_t). The numbers in ``CUDA_EXCEPTION_17`` and
``CUDA_EXCEPTION_18`` are cuda-gdb's own and stand the other way round there, which is why a name
always wins over such a number (gdb/signals.def of cuda-gdb 12.4; cudadebugger.h).
"""

from __future__ import annotations

import re

_CODES: dict[str, int] = {
    "lane illegal address": 1,
    "lane user stack overflow": 2,
    "device hardware stack overflow": 3,
    "warp illegal instruction": 4,
    "warp out of range address": 5,
    "warp misaligned address": 6,
    "warp invalid address space": 7,
    "warp invalid pc": 8,
    "warp hardware stack overflow": 9,
    "device illegal address": 10,
    "lane misaligned address": 11,
    "warp assert": 12,
    "lane syscall error": 13,
    "warp illegal address": 14,
    "invalid managed memory access": 15,
    "non migratable system scoped atomic access": 16,
    "cluster out of range address": 17,
    "cluster block not present": 18,
    "cluster target block not present": 18,
    "warp stack canary": 19,
    "warp tensor memory access check": 20,
    "warp tmem access check": 20,
    "warp tensor memory leak": 21,
    "warp tmem leak": 21,
    "warp call requires newer driver": 22,
    "warp misaligned pc": 23,
    "warp pc overflow": 24,
    "warp misaligned register": 25,
    "warp misaligned reg": 25,
    "warp illegal instruction encoding": 26,
    "warp illegal instr encoding": 26,
    "warp illegal instruction parameter": 27,
    "warp illegal instr param": 27,
    "warp out of range register": 28,
    "warp invalid constant address": 29,
    "warp invalid const addr": 29,
    "warp mmu fault": 30,
    "warp arrive": 31,
    "warp barrier arrival error": 31,
    "warp barrier arrival mismatch": 31,
    "cluster poison": 32,
    "cluster shared memory issue": 32,
    "warp api stack error": 33,
    "warp block not present": 34,
    "warp user stack overflow": 35,
    "warp tma syscall": 36,
    "warp tma syscall error": 36,
}

UNKNOWN = "device unknown exception"
"""What a debugger says that is older than the exception; the number is in a warning."""

_SEPARATORS = re.compile(r"[\s_-]{1,64}")
_SIGNAL_OWN = {17: 18, 18: 17}


def normalise(name: str) -> str:
    """``Warp Out-of-range Address`` and ``CUDBG_EXCEPTION_WARP_OUT_OF_RANGE_ADDRESS`` → the same words."""
    words = _SEPARATORS.sub(" ", name.strip().rstrip(".").lower())
    return words.removeprefix("cudbg exception ")


def code_of(name: str) -> int | None:
    """The code of an exception name in any spelling; None when nobody has seen the name yet."""
    return _CODES.get(normalise(name))


def code_of_signal(number: int) -> int | None:
    """The code behind ``CUDA_EXCEPTION_N``, for texts that give no name. 0 is the unknown exception."""
    return _SIGNAL_OWN.get(number, number) or None
