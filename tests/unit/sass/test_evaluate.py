"""The evaluator against the compiler: what a kernel stores is what its C expression means."""

from __future__ import annotations

import json
import lzma
import random
from pathlib import Path

import pytest

from crashlab.sass.line import SassLine
from crashlab.sass.operands import parse
from crashlab.sass.recompute import recompute

from .expression_cases import CASES, Case, s32, s64

RECORDED = json.loads(
    lzma.decompress((Path(__file__).parents[2] / "data" / "sass" / "expressions.json.xz").read_bytes())
)
# Where kernel arguments begin in constant bank 0.
PARAMETERS = {"75": 0x160, "80": 0x160, "90": 0x210, "100": 0x380, "120": 0x380}
BLOCK_SIZE = {"75": 0x0, "80": 0x0, "90": 0x0, "100": 0x360, "120": 0x360}
EDGES = (0, 1, -1, 7, 8, -8, 0x7FFFFFFF, -0x80000000, 12345, -99999)


def constants(arch: str, n: dict[str, int]) -> dict[str, int]:
    """The constant bank and special registers of a launch with the arguments ``n``."""
    base = PARAMETERS[arch]
    words = {0: 0xABC0, 4: 0x7F00}
    for offset, name, size in ((8, "a", 1), (12, "b", 1), (16, "u", 1), (20, "v", 1), (24, "x", 2), (32, "y", 2), (40, "p", 2)):
        for i in range(size):
            words[offset + 4 * i] = n[name] >> 32 * i & 0xFFFFFFFF
    found = {f"c[0x0][{base + offset:#x}]": value for offset, value in words.items()}
    found[f"c[0x0][{BLOCK_SIZE[arch]:#x}]"] = n["size"]
    return found | {"SR_TID.X": n["tid"], "SR_CTAID.X": n["block"]}


def arguments(seed: int) -> dict[str, int]:
    dice = random.Random(seed)

    def value(bits: int, signed: bool) -> int:
        raw = dice.choice(EDGES) if dice.random() < 0.4 else dice.getrandbits(bits)
        raw &= (1 << bits) - 1
        return (s32 if bits == 32 else s64)(raw) if signed else raw

    return {
        "a": value(32, True), "b": value(32, True), "u": value(32, False), "v": value(32, False),
        "x": value(64, True), "y": value(64, False), "p": 0x7F1200000000 + 4 * dice.getrandbits(30),
        "tid": dice.randrange(1024), "block": dice.randrange(65536), "size": 256,
    }  # fmt: skip


def stored(arch: str, case: Case, n: dict[str, int]) -> int | None:
    lines = [SassLine(pc, text) for pc, text in RECORDED[arch][case.name]]
    store = next(line for line in lines if line.text.split()[0].startswith("STG"))
    parsed = parse(store.text)
    data = parsed.operands[1].register or ""
    names = [data, f"R{int(data[1:]) + 1}"] if parsed.width_bytes == 8 and data != "RZ" else [data]
    if data == "RZ":
        return 0
    found = recompute(lines, store.pc, store.pc, names, constants(arch, n))
    if found.values is None:
        return None
    return sum(found.values[name] << 32 * i for i, name in enumerate(names))


@pytest.mark.parametrize("arch", sorted(RECORDED))
def test_evaluated_stores_mean_what_the_source_says(arch: str) -> None:
    known = 0
    for case in CASES:
        for seed in range(12):
            n = arguments(seed)
            value = stored(arch, case, n)
            if value is None:
                break
            bits = 64 if "long long" in case.type else 32
            assert value == case.meaning(n) & ((1 << bits) - 1), (arch, case.name, n)
        else:
            known += 1
    assert known >= len(CASES) * 0.75, f"only {known} of {len(CASES)} evaluated"
