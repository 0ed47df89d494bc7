"""C expressions over kernel arguments with their meaning in Python: shared by test and recorder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

Arguments = Mapping[str, int]


class Case(NamedTuple):
    """``meaning`` takes signed and unsigned Python integers of the C arguments' values."""

    name: str
    type: str
    expression: str
    meaning: Callable[[Arguments], int]


def s32(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def u32(value: int) -> int:
    return value & 0xFFFFFFFF


def s64(value: int) -> int:
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def u64(value: int) -> int:
    return value & ((1 << 64) - 1)


def quotient(a: int, b: int) -> int:
    """C's division, which rounds towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _case(type_: str, expression: str, meaning: Callable[[Arguments], int]) -> Case:
    return Case(f"{type_}: {expression}", type_, expression, meaning)


INT, U, L, Y = "int", "unsigned", "long long", "unsigned long long"

CASES: tuple[Case, ...] = (
    _case(INT, "a + b", lambda n: n["a"] + n["b"]),
    _case(INT, "a - b", lambda n: n["a"] - n["b"]),
    _case(INT, "a * b", lambda n: n["a"] * n["b"]),
    _case(INT, "a * b + (int)u", lambda n: n["a"] * n["b"] + n["u"]),
    _case(INT, "a * 12 - b", lambda n: n["a"] * 12 - n["b"]),
    _case(INT, "-a", lambda n: -n["a"]),
    _case(INT, "a << 3", lambda n: n["a"] << 3),
    _case(INT, "(a << 4) + b", lambda n: (n["a"] << 4) + n["b"]),
    _case(INT, "a >> 5", lambda n: n["a"] >> 5),
    _case(U, "u >> 5", lambda n: n["u"] >> 5),
    _case(U, "u >> (v & 31)", lambda n: n["u"] >> (n["v"] & 31)),
    _case(U, "(u >> 7) & 63", lambda n: n["u"] >> 7 & 63),
    _case(U, "u & v", lambda n: n["u"] & n["v"]),
    _case(U, "u | ~v", lambda n: n["u"] | u32(~n["v"])),
    _case(U, "(u ^ v) & 0xfffffff0u", lambda n: (n["u"] ^ n["v"]) & 0xFFFFFFF0),
    _case(U, "(u & v) | (~u & (unsigned)a)", lambda n: n["u"] & n["v"] | u32(~n["u"]) & u32(n["a"])),
    _case(U, "__byte_perm(u, v, 0x5410)", lambda n: n["u"] & 0xFFFF | (n["v"] & 0xFFFF) << 16),
    _case(U, "__byte_perm(u, v, 0x0123)", lambda n: int.from_bytes(n["u"].to_bytes(4, "little"), "big")),
    _case(U, "__funnelshift_r(u, v, 9)", lambda n: (n["v"] << 32 | n["u"]) >> 9),
    _case(U, "__funnelshift_l(u, v, 9)", lambda n: (n["v"] << 32 | n["u"]) << 9 >> 32),
    _case(U, "__umulhi(u, v)", lambda n: n["u"] * n["v"] >> 32),
    _case(INT, "__mulhi(a, b)", lambda n: n["a"] * n["b"] >> 32),
    _case(INT, "a < b ? a : b", lambda n: min(n["a"], n["b"])),
    _case(INT, "a > 17 ? a : 17", lambda n: max(n["a"], 17)),
    _case(U, "min(u, v)", lambda n: min(n["u"], n["v"])),
    _case(INT, "a < b ? 3 : 5", lambda n: 3 if n["a"] < n["b"] else 5),
    _case(INT, "u < v ? a : b", lambda n: n["a"] if n["u"] < n["v"] else n["b"]),
    _case(
        INT, "(a < b && u >= v) ? a : b", lambda n: n["a"] if n["a"] < n["b"] and n["u"] >= n["v"] else n["b"]
    ),
    _case(INT, "(a == b || u != v) ? a : 9", lambda n: n["a"] if n["a"] == n["b"] or n["u"] != n["v"] else 9),
    _case(INT, "x < (long long)y ? a : b", lambda n: n["a"] if n["x"] < s64(n["y"]) else n["b"]),
    _case(INT, "(unsigned long long)x <= y ? a : b", lambda n: n["a"] if u64(n["x"]) <= n["y"] else n["b"]),
    _case(INT, "x == (long long)y ? a : b", lambda n: n["a"] if n["x"] == s64(n["y"]) else n["b"]),
    _case(INT, "x >= 12345678901ll ? a : b", lambda n: n["a"] if n["x"] >= 12345678901 else n["b"]),
    _case(INT, "a / 8", lambda n: quotient(n["a"], 8)),
    _case(INT, "a / 7", lambda n: quotient(n["a"], 7)),
    _case(INT, "a % 8", lambda n: n["a"] - 8 * quotient(n["a"], 8)),
    _case(U, "u / 10", lambda n: n["u"] // 10),
    _case(U, "u % 1000", lambda n: n["u"] % 1000),
    _case(L, "(long long)a * b", lambda n: n["a"] * n["b"]),
    _case(Y, "(unsigned long long)u * v", lambda n: n["u"] * n["v"]),
    _case(L, "(long long)a * b + x", lambda n: n["a"] * n["b"] + n["x"]),
    _case(Y, "(unsigned long long)u * v + y", lambda n: n["u"] * n["v"] + n["y"]),
    _case(L, "x + (long long)y", lambda n: n["x"] + n["y"]),
    _case(L, "x - (long long)y", lambda n: n["x"] - n["y"]),
    _case(L, "-x", lambda n: -n["x"]),
    _case(L, "x * (long long)y", lambda n: n["x"] * n["y"]),
    _case(L, "x * 40 + a", lambda n: n["x"] * 40 + n["a"]),
    _case(L, "x + a", lambda n: n["x"] + n["a"]),
    _case(L, "x - u", lambda n: n["x"] - n["u"]),
    _case(L, "x << 7", lambda n: n["x"] << 7),
    _case(L, "x >> 9", lambda n: n["x"] >> 9),
    _case(Y, "y >> 9", lambda n: n["y"] >> 9),
    _case(Y, "y >> 36", lambda n: n["y"] >> 36),
    _case(L, "x << 35", lambda n: n["x"] << 35),
    _case(
        Y, "(y & 0xffff0000ffff0000ull) | 0x12345678ull", lambda n: n["y"] & 0xFFFF0000FFFF0000 | 0x12345678
    ),
    _case(L, "a < b ? x : (long long)y", lambda n: n["x"] if n["a"] < n["b"] else n["y"]),
    _case(L, "(long long)(p + a)", lambda n: n["p"] + 4 * n["a"]),
    _case(L, "(long long)(p + u)", lambda n: n["p"] + 4 * n["u"]),
    _case(L, "(long long)(p + a * b)", lambda n: n["p"] + 4 * s32(n["a"] * n["b"])),
    _case(L, "(long long)(p + (long long)a * b)", lambda n: n["p"] + 4 * n["a"] * n["b"]),
    _case(L, "(long long)(p + x)", lambda n: n["p"] + 4 * n["x"]),
    _case(L, "(long long)(p - x + a)", lambda n: n["p"] - 4 * n["x"] + 4 * n["a"]),
    _case(L, "(long long)(p + x * 3 + u)", lambda n: n["p"] + 12 * n["x"] + 4 * n["u"]),
    _case(L, "(long long)(p + t)", lambda n: n["p"] + 4 * n["tid"]),
    _case(L, "(long long)(p + g)", lambda n: n["p"] + 4 * u32(n["block"] * n["size"] + n["tid"])),
    _case(
        L,
        "(long long)(p + (unsigned)a * g + 5)",
        lambda n: n["p"] + 4 * u32(u32(n["a"]) * (n["block"] * n["size"] + n["tid"]) + 5),
    ),
    _case(
        L,
        "(long long)(p + (t == 5 ? x : (long long)t))",
        lambda n: n["p"] + 4 * (n["x"] if n["tid"] == 5 else n["tid"]),
    ),
    _case(U, "(u + 7u) / 8u * v", lambda n: u32(n["u"] + 7) // 8 * n["v"]),
    _case(U, "0xdeadbeefu ^ u", lambda n: 0xDEADBEEF ^ n["u"]),
    _case(INT, "a < 0 ? -a : a", lambda n: abs(n["a"])),
    _case(Y, "0x123456789abcdefull", lambda n: 0x123456789ABCDEF),
    _case(U, "((u + 3u) & ~3u) + (v << 2)", lambda n: (u32(n["u"] + 3) & ~3) + (n["v"] << 2)),
    _case(U, "u + v + (unsigned)a + (unsigned)b", lambda n: n["u"] + n["v"] + n["a"] + n["b"]),
)
