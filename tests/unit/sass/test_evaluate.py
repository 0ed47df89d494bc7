"""The evaluator against the compiler: what a kernel stores is what its C expression means."""

from __future__ import annotations

import json
import lzma
import random
from pathlib import Path

import pytest

from crashlab.sass.evaluate import evaluate
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
    for offset, name, size in (
        (8, "a", 1),
        (12, "b", 1),
        (16, "u", 1),
        (20, "v", 1),
        (24, "x", 2),
        (32, "y", 2),
        (40, "p", 2),
    ):
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


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        ("HFMA2.MMA R5, -RZ, RZ, 1.875, 0", {}, {"R5": 0x3F800000}),
        ("HFMA2 R5, -RZ, RZ, 0, 2", {}, {"R5": 0x4000}),
        ("CS2R R6, SRZ", {}, {"R6": 0, "R7": 0}),
        ("CS2R.32 R6, SRZ", {}, {"R6": 0}),
        ("MOV.64 R2, R4", {"R4": 1, "R5": 2}, {"R2": 1, "R3": 2}),
        ("UMOV UR4, URZ", {}, {"UR4": 0}),
        ("MOV R2, ~R4", {"R4": 0}, {"R2": 0xFFFFFFFF}),
        ("SEL.64 R2, R4, 0x80, P0", {"P0": 0}, {"R2": 0x80, "R3": 0}),
        ("IADD.64 R2, R4, -0x1", {"R4": 0, "R5": 1}, {"R2": 0xFFFFFFFF, "R3": 0}),
        ("IADD3 R2, P1, -R4, 0x5, RZ", {"R4": 0}, {"R2": 5, "P1": 1}),
        ("IADD3 R2, P1, -R4, 0x5, RZ", {"R4": 6}, {"R2": 0xFFFFFFFF, "P1": 0}),
        ("IADD3 R2, P1, P2, R4, R4, R4", {"R4": 0xFFFFFFFF}, {"R2": 0xFFFFFFFD, "P1": None, "P2": None}),
        ("IMAD.HI.U32 R2, R4, R5, RZ", {"R4": 1 << 31, "R5": 6}, {"R2": 3}),
        ("IMAD.WIDE R2, R4, -0x1, RZ", {"R4": 1}, {"R2": 0xFFFFFFFF, "R3": 0xFFFFFFFF}),
        ("LEA.HI.X.SX32 R3, R0, RZ, 0x2, P0", {"R0": 0x80000000, "P0": 0}, {"R3": 0xFFFFFFFE}),
        ("LEA R2, P0, -R4, R5, 0x2", {"R4": 1, "R5": 8}, {"R2": 4, "P0": None}),
        ("SHF.R.S32.HI R2, RZ, 0x1f, R4", {"R4": 0x80000000}, {"R2": 0xFFFFFFFF}),
        ("SHF.R.W.U32 R2, R4, 0x21, RZ", {"R4": 8}, {"R2": 4}),
        ("SHF.L.U32 R2, R4, 0x28, RZ", {"R4": 8}, {"R2": None}),
        ("LOP3.LUT P0, R2, R4, 0xf0, RZ, 0xc0, !PT", {"R4": 0x0F}, {"R2": 0, "P0": 0}),
        ("LOP3.LUT P0, R2, R4, 0xf0, RZ, 0xc0, PT", {"R4": 0x0F}, {"R2": 0, "P0": None}),
        ("IMNMX.U32 R2, R4, 0x5, !PT", {"R4": 0xFFFFFFFF}, {"R2": 0xFFFFFFFF}),
        ("IABS R2, R4", {"R4": 0xFFFFFFFB}, {"R2": 5}),
        ("PRMT R2, R4, 0x8889, RZ", {"R4": 0x8000}, {"R2": 0xFF}),
        ("ISETP.EQ.U64.OR P0, P1, R2, R4, !PT", {"R2": 1, "R3": 0, "R4": 1, "R5": 0}, {"P0": 1, "P1": 0}),
        ("ISETP.GT.AND.EX P0, PT, R2, R4, PT, P3", {"R2": 1, "R4": 1, "P3": 1}, {"P0": 1}),
        ("LDC R2, c[0x3][R4+0x8]", {"R4": 4, "c[0x3][0xc]": 9}, {"R2": 9}),
        ("LDC.64 R4, c[0x0][0x0]", {"c[0x0][0x0]": 1}, {"R4": 1, "R5": None}),
        ("LDCU.128 UR4, c[0x0][0x0]", {"c[0x0][0xc]": 3}, {"UR4": None, "UR7": 3}),
        ("S2R R2, SR_TID.X", {"SR_TID.X": 7}, {"R2": 7}),
        ("IMAD R2, R4, c[0x0][0x4], RZ", {"R4": 3, "c[0x0][0x4]": 5}, {"R2": 15}),
    ],
)  # fmt: skip
def test_single_instructions(text: str, given: dict[str, int], expected: dict[str, int | None]) -> None:
    found = evaluate(parse(text), given.get)
    assert found is not None
    assert {name: found.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    "text",
    [
        "IADD3 R2, R4, R5, RZ",
        "IADD.64 R2, R4, R6",
        "IMAD R2, R4, R5, RZ",
        "LEA R2, R4, R5, 0x2",
        "SHF.L.U32 R2, R4, R5, RZ",
        "LOP3.LUT R2, R4, R5, RZ, 0xc0, !PT",
        "MOV R2, R4",
        "SEL R2, R4, R5, P0",
        "ISETP.NE.AND P0, PT, R4, RZ, PT",
        "IMNMX R2, R4, R5, PT",
        "IABS R2, R4",
        "PRMT R2, R4, R5, R6",
        "S2R R2, SR_TID.X",
        "LDC R2, c[0x0][0x4]",
        "LDC R2, c[0x0][R4]",
        "IMAD.WIDE R2, R4, R5, R6",
        "MOV R2, |R4|",
        "MOV R2, R4.H0_H0",
        "MOV R2, cx[UR4][0x8]",
        "MOV R2, c[0x0][UR4]",
    ],
)
def test_without_its_inputs_nothing_is_known(text: str) -> None:
    found = evaluate(parse(text), lambda _: None)
    assert found is not None
    assert set(found.values()) == {None}


@pytest.mark.parametrize(
    "text",
    [
        "FADD R2, R4, R5",
        "LDG.E R2, [R4.64]",
        "R2UR UR4, R2",
        "FROB R2",
        "IMAD R2, R4, R5",
        "LEA R2, R4, R5",
        "LEA.HI R2, R4, R5, 0x2",
        "SHF.L.U32 R2, R4, R5",
        "LOP3.LUT R2, R4, R5, RZ, R6, !PT",
        "LOP3.PAND.LUT P0, R2, R4, R5, RZ, 0xc0, PT",
        "MOV R2",
        "SEL R2, R4, R5",
        "ISETP.FROB.AND P0, PT, R4, RZ, PT",
        "IMNMX.RELU R2, R4, R5, PT",
        "IABS.FROB R2, R4",
        "PRMT.F4E R2, R4, R5, R6",
        "S2R R2, A, B",
        "CS2R R2, SR_CLOCKLO",
        "LDC.U8 R2, c[0x0][0x4]",
        "HFMA2.MMA R5, R2, RZ, 1, 0",
        "HFMA2 R5, -RZ, RZ, 1e9, 0",
        "HFMA2.BF16_V2 R5, -RZ, RZ, 1, 0",
    ],
)
def test_what_is_not_certain_is_not_evaluated(text: str) -> None:
    assert evaluate(parse(text), lambda _: 1) is None
