"""What logic, comparisons, selections and byte permutations give."""

from __future__ import annotations

from collections.abc import Callable

from crashlab.sass.machine import MASK, Machine, Values, signed


def lop3(machine: Machine) -> Values | None:
    """LOP3: any logic of three words, by its truth table; None for a form that is not known."""
    if len(machine.values) != 4 or machine.values[3].value is None or "PAND" in machine.modifiers:
        return None
    table = machine.values[3].value
    a, b, c = (machine.word(operand) for operand in machine.values[:3])
    result: int | None = None
    if a is not None and b is not None and c is not None:
        result = 0
        for index in range(8):
            if table >> index & 1:
                result |= (a if index & 4 else ~a) & (b if index & 2 else ~b) & (c if index & 1 else ~c)
        result &= MASK
    values = machine.write(result)
    plain = all(machine.flag(condition) == 0 for condition in machine.conditions)
    for predicate in machine.leading:
        if predicate.register not in ("PT", "UPT"):
            values[predicate.register or ""] = None if result is None or not plain else int(result != 0)
    return values


def select(machine: Machine) -> Values | None:
    """SEL: one of two words, by a predicate; None for a form that is not known."""
    if len(machine.values) != 2 or len(machine.conditions) != 1:
        return None
    bits = 64 if "64" in machine.modifiers else 32
    flag = machine.flag(machine.conditions[0])
    if flag is None:
        return machine.write(None, bits)
    return machine.write(machine.word(machine.values[0 if flag else 1], bits), bits)


_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: a != b,
}


def isetp(machine: Machine) -> Values | None:
    """ISETP: a comparison of two integers into predicates; None for a form that is not known."""
    kind = next((name for name in _COMPARE if name in machine.modifiers), None)
    operands, targets = machine.operands[2:], machine.operands[:2]
    if kind is None or len(operands) not in (3, 4) or not {"AND", "OR"} & machine.modifiers:
        return None
    bits = 64 if {"U64", "S64"} & machine.modifiers else 32
    a, b = machine.word(operands[0], bits), machine.word(operands[1], bits)
    flags = [machine.flag(operand) for operand in operands[2:]]
    extended = "EX" in machine.modifiers
    if a is None or b is None or None in flags or extended != (len(flags) == 2):
        return {target.register or "": None for target in targets}
    if not {"U32", "U64"} & machine.modifiers:
        a, b = signed(a, bits), signed(b, bits)
    result = _COMPARE[kind](a, b)
    if extended:
        result = _extend(kind, a, b, bool(flags[1]))
    joined = (result, not result)
    if "AND" in machine.modifiers:
        joined = (joined[0] and bool(flags[0]), joined[1] and bool(flags[0]))
    else:
        joined = (joined[0] or bool(flags[0]), joined[1] or bool(flags[0]))
    return {target.register or "": int(value) for target, value in zip(targets, joined, strict=True)}


def _extend(kind: str, a: int, b: int, lower: bool) -> bool:
    """The upper half of a 64-bit comparison, ``lower`` being what the lower half gave."""
    if kind == "EQ":
        return a == b and lower
    if kind == "NE":
        return a != b or lower
    return _COMPARE[kind[0] + "T"](a, b) or (a == b and lower)


def minmax(machine: Machine) -> Values | None:
    """IMNMX and VIMNMX: the smaller or the larger word, by a predicate; None for a form that is not known."""
    if len(machine.values) != 2 or len(machine.conditions) != 1 or machine.leading:
        return None
    if machine.modifiers - {"U32", "S32"}:
        return None
    a, b = (machine.word(operand) for operand in machine.values)
    smallest = machine.flag(machine.conditions[0])
    if a is None or b is None or smallest is None:
        return machine.write(None)
    key = (lambda value: value) if "U32" in machine.modifiers else signed
    return machine.write(min(a, b, key=key) if smallest else max(a, b, key=key))


def absolute(machine: Machine) -> Values | None:
    """IABS: a word without its sign; None for a form that is not known."""
    if len(machine.values) != 1 or machine.modifiers:
        return None
    value = machine.word(machine.values[0])
    return machine.write(None if value is None else abs(signed(value)) & MASK)


def permute(machine: Machine) -> Values | None:
    """PRMT: four bytes chosen from two words; None for a form that is not known."""
    if len(machine.values) != 3 or machine.modifiers:
        return None
    a, selector, b = (machine.word(operand) for operand in machine.values)
    if a is None or selector is None or b is None:
        return machine.write(None)
    source, result = b << 32 | a, 0
    for position in range(4):
        nibble = selector >> 4 * position & 15
        byte = source >> 8 * (nibble & 7) & 0xFF
        if nibble & 8:
            byte = 0xFF if byte & 0x80 else 0
        result |= byte << 8 * position
    return machine.write(result)
