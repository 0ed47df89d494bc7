"""Exception codes in people's words: cuda-gdb's spelling, and what each one says about the program."""

from __future__ import annotations

import re
from functools import lru_cache

from crashlab.gpucore.layout import EXCEPTION_NAMES, exception_name

_TITLES = {
    5: "Warp Out-of-range Address",
    10: "Device Illegal Address",
    12: "Warp Assert",
    17: "Cluster Out-of-range Address",
    18: "Cluster Block Not Present",
    20: "Warp Tensor Memory Access Check",
    21: "Warp Tensor Memory Leak",
    23: "Warp Misaligned PC",
    24: "Warp PC Overflow",
    25: "Warp Misaligned Register",
    26: "Warp Illegal Instruction Encoding",
    27: "Warp Illegal Instruction Parameter",
    28: "Warp Out-of-range Register",
    29: "Warp Invalid Constant Address",
    30: "Warp MMU Fault",
    8: "Warp Invalid PC",
    31: "Warp Barrier Arrival Error",
    33: "Warp API Stack Error",
    36: "Warp TMA Syscall Error",
}

_MEANINGS = {
    4: "an instruction the hardware refuses, or a TMA instruction given a corrupt descriptor",
    5: "an address outside the window of shared or local memory that the thread may use",
    6: "an address that is no multiple of the access width",
    7: "an instruction used on a memory space it cannot access",
    8: "a jump to an address that holds no code",
    9: "the hardware call stack ran out",
    10: "an access to unmapped memory that could not be tied to a warp",
    12: "a device-side assert whose condition was false",
    14: "an access to global memory that is not mapped",
    17: "an address outside the shared memory of another block of the cluster",
    18: "an access to a block of the cluster that is not resident any more",
    19: "the stack canary of a device function was overwritten",
    32: "a cluster was poisoned by an error elsewhere; suspect hardware when it comes alone",
    35: "the stack that the launch reserved for each thread ran out",
}

_ELSEWHERE = {
    "invalid managed memory access": 15,
    "non migratable system scoped atomic access": 16,
    "cluster target block not present": 18,
    "warp barrier arrival mismatch": 31,
    "cluster shared memory issue": 32,
}
"""What some cuda-gdb prints that is neither the enumerator nor the title of today."""


def title(code: int | None) -> str:
    """``14`` → ``Warp Illegal Address``; a code nobody knows yet prints as its number."""
    if code is None:
        return "no exception code"
    if code in _TITLES:
        return _TITLES[code]
    words = exception_name(code).removeprefix("CUDBG_EXCEPTION_")
    return f"unknown exception {code}" if words.isdigit() else words.replace("_", " ").title()


def meaning(code: int | None) -> str | None:
    """What the code says in a clause, or None."""
    return _MEANINGS.get(code) if code is not None else None


def spelled(name: str) -> str:
    """``Warp Out-of-range Address`` and ``CUDBG_EXCEPTION_WARP_OUT_OF_RANGE_ADDRESS`` → the same words."""
    words = re.sub(r"[^a-z0-9]+", " ", name[:200].lower()).strip()
    return words.removeprefix("cudbg exception ").removeprefix("cuda exception ")


def code_of(name: str) -> int | None:
    """The code of a name in anybody's spelling, of today or before; None when nobody has seen the name yet."""
    return _codes().get(spelled(name))


@lru_cache(maxsize=1)
def _codes() -> dict[str, int]:
    known = {spelled(name): code for code, name in EXCEPTION_NAMES.items()}
    return {**known, **{spelled(title(code)): code for code in EXCEPTION_NAMES}, **_ELSEWHERE}


def precision(code: int | None, *, lanes: int, has_warp: bool) -> str:
    """How precisely the hardware tells who faulted: lane, warp, sm or device."""
    if code == 10:
        return "device"
    if not has_warp:
        return "sm"
    return "lane" if code == 12 and lanes else "warp"
