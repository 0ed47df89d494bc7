"""What adds, multiplies and shifts give, carries included."""

from __future__ import annotations

from collections.abc import Sequence

from crashlab.sass.machine import MASK, Machine, Values, signed
from crashlab.sass.operand import Operand

_WIDE = 0xFFFFFFFFFFFFFFFF


def _sum(machine: Machine, terms: Sequence[Operand], bits: int = 32) -> tuple[int, int] | None:
    """Sum and carry. ``-x`` is ``~x`` plus one, so that minus zero carries, as a borrow chain needs."""
    total = 0
    for term in terms:
        if term.sign == "-" and term.kind != "integer":
            value = machine.word(term, bits)
            if value is None:
                return None
            total += value or 1 << bits
        else:
            value = machine.word(term, bits)
            if value is None:
                return None
            total += value
    for condition in machine.conditions:
        flag = machine.flag(condition)
        if flag is None:
            return None
        total += flag
    return total & ((1 << bits) - 1), total >> bits


def _with_carry(machine: Machine, found: tuple[int, int] | None, bits: int, sound: bool = True) -> Values:
    values = machine.write(None if found is None else found[0], bits)
    for carry in machine.carries:
        if carry.register in ("PT", "UPT"):
            continue
        one = len([c for c in machine.carries if c.register not in ("PT", "UPT")]) == 1
        known = found is not None and one and sound and found[1] < 2
        values[carry.register or ""] = found[1] if known and found is not None else None
    return values


def iadd3(machine: Machine) -> Values:
    """IADD3: the sum of its terms and of the carries that come in, with the carries that go out."""
    bits = 64 if "64" in machine.modifiers else 32
    return _with_carry(machine, _sum(machine, machine.values, bits), bits)


def imad(machine: Machine) -> Values | None:
    """IMAD: ``a * b + c``, low, ``.HI`` or ``.WIDE``; None for a form that is not known."""
    if len(machine.values) != 3:
        return None
    wide = "WIDE" in machine.modifiers
    bits = 64 if wide or "HI" in machine.modifiers else 32
    a, b = (machine.word(operand) for operand in machine.values[:2])
    c = machine.word(machine.values[2], bits)
    carries = [machine.flag(condition) for condition in machine.conditions]
    if a is None or b is None or c is None or None in carries:
        return _with_carry(machine, None, 64 if wide else 32)
    if "U32" not in machine.modifiers:
        a, b = signed(a), signed(b)
    total = (a * b & _WIDE) + c if bits == 64 else (a * b & MASK) + c
    total += sum(flag or 0 for flag in carries)
    if "HI" in machine.modifiers:
        return _with_carry(machine, (total >> 32 & MASK, total >> 64), 32, sound=False)
    return _with_carry(machine, (total & ((1 << bits) - 1), total >> bits), bits)


def lea(machine: Machine) -> Values | None:
    """LEA: ``(a << shift) + b``, or the upper half of it; None for a form that is not known."""
    operands = machine.values
    high, extend = "HI" in machine.modifiers, "SX32" in machine.modifiers
    expected = 4 if high and not extend else 3
    if len(operands) != expected or operands[-1].value is None:
        return None
    shift = operands[-1].value
    a, b = machine.word(operands[0]), machine.word(operands[1])
    upper = machine.word(operands[2]) if expected == 4 else 0
    carries = [machine.flag(condition) for condition in machine.conditions]
    if a is None or b is None or upper is None or None in carries or not 0 <= shift < 32:
        return _with_carry(machine, None, 32)
    if extend:
        upper = MASK if a >> 31 else 0
    shifted = (upper << 32 | a) << shift
    part = (shifted >> 32 if high else shifted) & MASK
    total = part + b + sum(flag or 0 for flag in carries)
    plain = not any(operand.sign and operand.kind != "integer" for operand in operands)
    return _with_carry(machine, (total & MASK, total >> 32), 32, plain)


def shf(machine: Machine) -> Values | None:
    """SHF: a 64-bit pair shifted, one half of it; the values are unknown for shifts past 31 bits."""
    if len(machine.values) != 3:
        return None
    low, shift, high = (machine.word(operand) for operand in machine.values)
    if low is None or shift is None or high is None:
        return machine.write(None)
    if "W" in machine.modifiers and not {"U64", "S64"} & machine.modifiers:
        shift &= 31
    if shift > 31:
        return machine.write(None)
    pair = high << 32 | low
    if "L" in machine.modifiers:
        pair <<= shift
    elif {"S32", "S64"} & machine.modifiers:
        pair = signed(pair, 64) >> shift
    else:
        pair >>= shift
    return machine.write((pair >> 32 if "HI" in machine.modifiers else pair) & MASK)
