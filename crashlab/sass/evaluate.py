"""The value an integer instruction computes, exactly, from the values of its operands.

Only what addresses are made of, and only forms whose meaning is certain: everything else is None.
The meanings were checked by evaluating compiled expressions and comparing with the source language
(``tests/unit/sass/test_evaluate.py``).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from crashlab.sass import registers
from crashlab.sass.operand import Operand
from crashlab.sass.operands import ParsedInstruction

MASK = 0xFFFFFFFF
WIDE = 0xFFFFFFFFFFFFFFFF

Read = Callable[[str], "int | None"]
Values = dict[str, "int | None"]


def evaluate(parsed: ParsedInstruction, read: Read) -> Values | None:
    """Registers that ``parsed`` defines with their values, some None when only part is known.

    ``read`` gives the value before the instruction, by name: ``R2``, ``P0`` (0 or 1), ``SR_TID.X``,
    ``c[0x0][0x160]`` (32-bit words). None for instructions that are not understood. The guard is the
    caller's business.
    """
    rule = _RULES.get(parsed.opcode)
    if rule is None or parsed.defines is None:
        return None
    found = rule(_Machine(parsed, read))
    if found is None:
        return None
    return {name: found.get(name) for name in parsed.defines}


class _Machine:
    """Operands of one instruction by role, with their values on request."""

    def __init__(self, parsed: ParsedInstruction, read: Read) -> None:
        self.modifiers = frozenset(parsed.modifiers)
        self.read = read
        count = 0
        operands = parsed.operands
        while count < len(operands) and operands[count].is_predicate and not operands[count].sign:
            count += 1
        self.first = count  # position of the first operand that is no leading predicate
        self.leading = operands[:count]
        rest = operands[count:]
        self.target = rest[0] if rest else None
        after = 1
        while after < len(rest) and rest[after].is_predicate and not rest[after].sign:
            after += 1
        self.carries = rest[1:after]
        self.sources = rest[after:]
        self.operands = operands

    @property
    def values(self) -> Sequence[Operand]:
        return [operand for operand in self.sources if not operand.is_predicate]

    @property
    def conditions(self) -> Sequence[Operand]:
        return [operand for operand in self.sources if operand.is_predicate]

    def word(self, operand: Operand, bits: int = 32, negate: bool = True) -> int | None:
        """The operand's value of 32 or 64 bits, signs applied."""
        raw = self._raw(operand, bits)
        if raw is None or operand.absolute or operand.selectors:
            return None
        mask = (1 << bits) - 1
        if operand.kind == "integer" or not operand.sign:
            return raw & mask
        if operand.sign == "~":
            return ~raw & mask
        return -raw & mask if operand.sign == "-" and negate else None

    def flag(self, operand: Operand) -> int | None:
        if operand.register in ("PT", "UPT"):
            value: int | None = 1
        else:
            value = self.read(operand.register or "")
        return None if value is None else int(bool(value) != (operand.sign == "!"))

    def write(self, value: int | None, bits: int = 32) -> Values:
        return self.put(self.target, value, bits)

    def put(self, target: Operand | None, value: int | None, bits: int = 32) -> Values:
        names = registers.run(target.register, bits // 32) if target is not None and target.register else ()
        return {
            name: None if value is None else value >> (32 * i) & MASK if bits > 32 else value
            for i, name in enumerate(names)
        }

    def _raw(self, operand: Operand, bits: int) -> int | None:
        if operand.kind == "integer":
            return operand.value
        if operand.register in ("RZ", "URZ"):
            return 0
        if operand.is_value_register and operand.register:
            return self._join(registers.run(operand.register, bits // 32))
        if operand.address is not None and operand.address.form == "c":
            return self._join(constant_words(operand, self.read, bits // 32))
        return None

    def _join(self, names: Sequence[str] | None) -> int | None:
        total = 0
        for i, name in enumerate(names or ("",)):
            value = self.read(name) if name else None
            if value is None:
                return None
            total |= (value & MASK) << 32 * i
        return total


def constant_words(operand: Operand, read: Read, count: int) -> tuple[str, ...] | None:
    """Names of the 32-bit constant words an operand reads; None when its index is not known."""
    address = operand.address
    if address is None or address.form != "c" or address.bank is None or address.uniform not in (None, "URZ"):
        return None
    index: int | None = 0
    if address.base not in (None, "RZ"):
        index = read(address.base or "")
    if index is None:
        return None
    offset = (index + address.offset) & MASK
    return tuple(f"c[{address.bank:#x}][{offset + 4 * i:#x}]" for i in range(count))


def _sum(machine: _Machine, terms: Sequence[Operand], bits: int = 32) -> tuple[int, int] | None:
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


def _with_carry(machine: _Machine, found: tuple[int, int] | None, bits: int, sound: bool = True) -> Values:
    values = machine.write(None if found is None else found[0], bits)
    for carry in machine.carries:
        if carry.register in ("PT", "UPT"):
            continue
        one = len([c for c in machine.carries if c.register not in ("PT", "UPT")]) == 1
        known = found is not None and one and sound and found[1] < 2
        values[carry.register or ""] = found[1] if known and found is not None else None
    return values


def _iadd3(machine: _Machine) -> Values:
    bits = 64 if "64" in machine.modifiers else 32
    return _with_carry(machine, _sum(machine, machine.values, bits), bits)


def _imad(machine: _Machine) -> Values | None:
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
        a, b = _signed(a), _signed(b)
    total = (a * b & WIDE) + c if bits == 64 else (a * b & MASK) + c
    total += sum(flag or 0 for flag in carries)
    if "HI" in machine.modifiers:
        return _with_carry(machine, (total >> 32 & MASK, total >> 64), 32, sound=False)
    return _with_carry(machine, (total & ((1 << bits) - 1), total >> bits), bits)


def _signed(value: int, bits: int = 32) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def _lea(machine: _Machine) -> Values | None:
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


def _shf(machine: _Machine) -> Values | None:
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
        pair = _signed(pair, 64) >> shift
    else:
        pair >>= shift
    return machine.write((pair >> 32 if "HI" in machine.modifiers else pair) & MASK)


def _lop3(machine: _Machine) -> Values | None:
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


def _move(machine: _Machine) -> Values | None:
    if not machine.values:
        return None
    bits = 64 if "64" in machine.modifiers else 32
    return machine.write(machine.word(machine.values[0], bits), bits)


def _select(machine: _Machine) -> Values | None:
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


def _isetp(machine: _Machine) -> Values | None:
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
        a, b = _signed(a, bits), _signed(b, bits)
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


def _minmax(machine: _Machine) -> Values | None:
    if len(machine.values) != 2 or len(machine.conditions) != 1 or machine.leading:
        return None
    if machine.modifiers - {"U32", "S32"}:
        return None
    a, b = (machine.word(operand) for operand in machine.values)
    smallest = machine.flag(machine.conditions[0])
    if a is None or b is None or smallest is None:
        return machine.write(None)
    key = (lambda value: value) if "U32" in machine.modifiers else _signed
    return machine.write(min(a, b, key=key) if smallest else max(a, b, key=key))


def _absolute(machine: _Machine) -> Values | None:
    if len(machine.values) != 1 or machine.modifiers:
        return None
    value = machine.word(machine.values[0])
    return machine.write(None if value is None else abs(_signed(value)) & MASK)


def _special(machine: _Machine) -> Values | None:
    if len(machine.sources) != 1:
        return None
    name = machine.sources[0].text
    return machine.write(0 if name == "SRZ" else machine.read(name))


def _special_pair(machine: _Machine) -> Values | None:
    if len(machine.sources) != 1 or machine.sources[0].text != "SRZ":
        return None
    bits = 32 if "32" in machine.modifiers else 64
    return machine.write(0, bits)


def _constant(machine: _Machine) -> Values | None:
    size = {"32": 1, "64": 2, "128": 4}
    sizes = [modifier for modifier in machine.modifiers if modifier not in size]
    if len(machine.sources) != 1 or sizes:
        return None
    count = max((size[modifier] for modifier in machine.modifiers), default=1)
    names = constant_words(machine.sources[0], machine.read, count)
    target = machine.target.register if machine.target and machine.target.register else "RZ"
    words = [machine.read(name) for name in names] if names else [None] * count
    return dict(zip(registers.run(target, count), words, strict=False))


def _half_constant(machine: _Machine) -> Values | None:
    """``HFMA2 R5, -RZ, RZ, 1.875, 0``: how the compiler loads a constant; the first half is the upper."""
    if machine.modifiers - {"MMA"} or len(machine.sources) != 4:
        return None
    if any(operand.register != "RZ" for operand in machine.sources[:2]):
        return None
    try:
        upper, lower = (struct.pack("<e", float(operand.text)) for operand in machine.sources[2:])
    except (ValueError, OverflowError, struct.error):
        return None
    return machine.write(int.from_bytes(lower + upper, "little"))


def _permute(machine: _Machine) -> Values | None:
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


_RULES: dict[str, Callable[[_Machine], Values | None]] = {
    **dict.fromkeys(("IADD3", "UIADD3", "VIADD", "UVIADD", "IADD"), _iadd3),
    **dict.fromkeys(("IMAD", "UIMAD"), _imad),
    **dict.fromkeys(("LEA", "ULEA"), _lea),
    **dict.fromkeys(("SHF", "USHF"), _shf),
    **dict.fromkeys(("LOP3", "ULOP3"), _lop3),
    **dict.fromkeys(("MOV", "UMOV"), _move),
    **dict.fromkeys(("SEL", "USEL"), _select),
    **dict.fromkeys(("ISETP", "UISETP"), _isetp),
    **dict.fromkeys(("IMNMX", "UIMNMX", "VIMNMX", "UVIMNMX"), _minmax),
    **dict.fromkeys(("IABS", "UIABS"), _absolute),
    **dict.fromkeys(("S2R", "S2UR"), _special),
    **dict.fromkeys(("CS2R", "CS2UR"), _special_pair),
    **dict.fromkeys(("LDC", "ULDC", "LDCU"), _constant),
    "HFMA2": _half_constant,
    **dict.fromkeys(("PRMT", "UPRMT"), _permute),
}
