"""What one instruction defines and reads, from its table row and its operands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from crashlab.sass import opcodes, registers
from crashlab.sass.address import AddressExpr
from crashlab.sass.memory_size import access_bytes, registers_for
from crashlab.sass.operand import Operand
from crashlab.sass.shape import Modifiers, Shape, before_address
from crashlab.sass.shapes import shape_of

Registers = tuple[str, ...]


def widen(address: AddressExpr, row: opcodes.Row | None, modifiers: Modifiers) -> AddressExpr:
    """Fill in the widths that the text leaves out: ``LD.E R0, [R2]`` (sm_75) reads R2 and R3.

    ``.E`` is the 64-bit address space; ``[R2.U32+UR4]`` adds a 32-bit offset to a uniform pair.
    """
    if (
        row is None
        or not row.wide_addresses
        or "E" not in modifiers
        or address.form not in ("memory", "desc")
    ):
        return address
    if address.base is not None and address.base_extension is None and address.base_bits == 32:
        address = address._replace(base_bits=64)
    return address._replace(uniform_bits=64) if address.uniform is not None else address


def effects(
    row: opcodes.Row | None, opcode: str, modifiers: Modifiers, operands: Sequence[Operand], guard: str | None
) -> tuple[Registers | None, Registers | None]:
    """Registers defined and registers read, each None when it is not known.

    ``operands`` have their addresses widened; ``guard`` is the predicate in front.
    """
    shape = None if row is None else _shape(row, opcode, modifiers, operands)
    if row is None or shape is None:
        return None, None
    reads: list[str] = list(registers.run(guard, 1)) if guard else []
    defines: list[str] = list(shape.defines)
    count = shape.destinations or 0
    for position, operand in enumerate(operands):
        found = _operand_registers(operand, shape.width(position))
        if position < count and operand.kind != "address":
            defines.extend(found)
        else:
            reads.extend(found)
    reads.extend(shape.reads)
    return (
        None if shape.destinations is None else _unique(defines),
        _unique(reads) if shape.reads_known else None,
    )


def _operand_registers(operand: Operand, width: int) -> Registers:
    address = operand.address
    if address is None:
        if operand.register is None:
            return ()
        return registers.run(operand.register, width if operand.is_value_register else 1)
    found = address.all_registers()
    if address.form == "gdesc":
        width = max(width, 2)
    if address.uniform is not None and width > 1:
        found += registers.run(address.uniform, width)
    return found


def _unique(names: Iterable[str]) -> Registers:
    return tuple(dict.fromkeys(names))


def _shape(row: opcodes.Row, opcode: str, modifiers: Modifiers, operands: Sequence[Operand]) -> Shape | None:
    if any(operand.kind == "word" and "[" in operand.text for operand in operands):
        return None
    if row.shape is not None:
        return shape_of(row.shape, opcode, modifiers, operands)
    destinations = _destinations(row.destinations, operands)
    present = frozenset(modifiers)
    names, defined, used = next(entry for entry in row.widths if entry[0] <= present)
    sized_by_memory = "m" in defined + used
    if not sized_by_memory and row.access is None and (present & opcodes.SIZING) - names:
        return None  # a wider form that the row does not have
    size = access_bytes(modifiers) if sized_by_memory else 4
    if size is None or (size == 32 and "ENL2" not in modifiers):
        return None
    data = registers_for(size) if size < 32 else 4  # .ENL2.256: two operands of 128 bits
    return Shape(destinations, _widths(operands, destinations or 0, defined, used, data))


def _destinations(rule: str | None, operands: Sequence[Operand]) -> int | None:
    if rule is None:
        return None
    if rule == "dm":
        return before_address(operands)
    if rule == "dp":
        return _predicates_from(operands, 0)
    if rule != "da":
        return int(rule[1:])
    count = _predicates_from(operands, 0) + 1
    return count + _predicates_from(operands, count)


def _predicates_from(operands: Sequence[Operand], start: int) -> int:
    count = 0
    while (
        start + count < len(operands)
        and operands[start + count].is_predicate
        and not operands[start + count].sign
    ):
        count += 1
    return count


def _widths(
    operands: Sequence[Operand], destinations: int, defined: str, used: str, data: int
) -> tuple[int, ...]:
    """One width an operand. Addresses take what their text says (0), and hold a place among the uses."""
    widths, position = [], {True: 0, False: 0}
    for index, operand in enumerate(operands):
        is_destination = index < destinations
        digits = defined if is_destination else used
        if operand.is_predicate:
            widths.append(1)
            continue
        digit = digits[min(position[is_destination], len(digits) - 1)]
        position[is_destination] += 1
        if operand.kind == "address" and operand.address and operand.address.form not in ("c", "cx"):
            widths.append(0)
        else:
            widths.append(data if digit == "m" else int(digit))
    return tuple(widths) or (1,)
