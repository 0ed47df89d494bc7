"""Register counts of matrix instructions and tensor memory.

Each function gives a :class:`Shape`, or None for a form that is not known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from crashlab.sass.operand import Operand
from crashlab.sass.shape import Modifiers, Shape, before_address


def mma(opcode: str, modifiers: Modifiers, operands: Sequence[Operand]) -> Shape | None:
    """Elements of each matrix times their bits over 32 lanes of 32 bits."""
    shape = next((f for m in modifiers if (f := re.fullmatch(r"(16|8)x?(8)x?(\d{1,3})", m))), None)
    if opcode == "HMMA" and modifiers[:3] == ("884", "F32", "F32"):  # sm_70, in four steps
        return Shape(1, (2,))
    if shape is None or len(operands) < 4:
        return None
    m, n, k = (int(number) for number in shape.groups())
    out_bits, in_bits = _mma_bits(opcode, frozenset(modifiers))
    if in_bits is None or out_bits is None:
        return None
    sparse = 2 if "SP" in modifiers else 1
    a, b, c = (m * k * in_bits // sparse, k * n * in_bits, m * n * out_bits)
    if min(a, b, c) < 1024:
        return None
    return Shape(1, (c // 1024, a // 1024, b // 1024, c // 1024, 1))


def _mma_bits(opcode: str, types: frozenset[str]) -> tuple[int | None, int | None]:
    if opcode == "HMMA":
        return (32 if "F32" in types else 16), (32 if "TF32" in types else 16)
    if opcode == "DMMA":
        return 64, 64
    if opcode == "BMMA":
        return 32, 1
    if opcode == "IMMA":
        return 32, (4 if {"S4", "U4"} & types else 8)
    accumulator = 32 if "F32" in types else 16
    return accumulator, {"QMMA": 8, "OMMA": 4}.get(opcode)


def warpgroup_mma(modifiers: Modifiers, operands: Sequence[Operand]) -> Shape | None:
    """wgmma: 64xN over 128 lanes; a ``gdesc`` is always four uniform registers, the first two
    unused when the first input comes from registers."""
    shape = next((f for m in modifiers if (f := re.fullmatch(r"64x(\d{1,3})x(\d{1,3})", m))), None)
    if shape is None or len(operands) < 3:
        return None
    half = "F16" in modifiers and "F32" not in modifiers
    result = int(shape[1]) // (4 if half else 2)
    if operands[1].kind == "address":
        return Shape(1, (result, 4, result, 1))
    return Shape(1, (result, 4, 4, result, 1))


def utc_mma(modifiers: Modifiers, operands: Sequence[Operand]) -> Shape:
    """tcgen05.mma: matrix descriptors are pairs. What follows ``idesc`` is either the scale factors
    (a pair of tensor memory addresses) or the mask of output lanes (128 or 256 bits, 64 with ``.WS``)."""
    mask = 2 if "WS" in modifiers else 8 if "2CTA" in modifiers else 4
    widths, after = [], False
    for operand in operands:
        form = operand.address.form if operand.address else ""
        if form == "gdesc" or (after and form == "tmem"):
            widths.append(2)
        else:
            widths.append(mask if after and operand.kind == "uniform" else 1)
        after = after or form == "idesc"
    return Shape(0, tuple(widths) or (1,))


def matrix_tile(modifiers: Modifiers, operands: Sequence[Operand]) -> Shape | None:
    """LDSM and STSM: ``.M88.4`` moves four 8x8 matrices, one register each; 16x16 bytes take two."""
    count = modifiers[-1] if modifiers else ""
    if count not in ("1", "2", "4"):
        count = "1" if modifiers and re.fullmatch(r"MT?(?:88|816|168|1616)", modifiers[-1]) else ""
    if not count or not operands:
        return None
    width = int(count) * (2 if "MT1616" in modifiers else 1)
    return Shape(before_address(operands), (0, width) if operands[0].kind == "address" else (width, 0))


def tensor_memory(modifiers: Modifiers, operands: Sequence[Operand]) -> Shape | None:
    """LDTM and STTM: lanes x bits of one step (1, 2 or 4 registers), times the ``.xN`` repetition.

    ``.STAT`` (sm_103) has the minimum or maximum over the columns as first operand.
    """
    step, repeat = 1, 1
    for modifier in modifiers:
        shape = re.fullmatch(r"(?:16|32)dp(32|64|128|256)bit(?:_t\d{1,2}_t\d{1,2})?", modifier)
        times = re.fullmatch(r"x(\d{1,3})", modifier)
        if shape:
            step = {"32": 1, "64": 1, "128": 2, "256": 4}[shape[1]]
        elif times:
            repeat = int(times[1])
        elif modifier not in _SAME_SIZE:
            return None
    width = step * repeat
    if operands and operands[0].kind == "address":
        return Shape(0, (0, width))
    return Shape(2, (1, width, 0)) if "STAT" in modifiers else Shape(1, (width, 0))


_SAME_SIZE = frozenset({"PACK16BIT", "EXPAND16BIT", "STAT", "MIN", "MAX", "F32", "ABS", "NAN"})
