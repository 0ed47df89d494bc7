"""One instruction as an evaluator sees it: sources, conditions, targets, with their values on request."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crashlab.sass import registers
from crashlab.sass.operand import Operand
from crashlab.sass.operands import ParsedInstruction

MASK = 0xFFFFFFFF

Read = Callable[[str], "int | None"]
Values = dict[str, "int | None"]


class Machine:
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


def signed(value: int, bits: int = 32) -> int:
    """The two's complement reading of an unsigned value."""
    return value - (1 << bits) if value >> (bits - 1) else value
