"""Which pointer argument the code computes an address from, read off the instructions before the fault."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crashlab.errors import CrashlabError
from crashlab.postmortem.arguments import PointerArgument
from crashlab.sass.operand import Operand
from crashlab.sass.operands import ParsedInstruction, parse
from crashlab.sass.slice import SliceStep

_WORD = 4


def named_argument(
    steps: Sequence[SliceStep],
    registers: Sequence[str],
    arguments: Sequence[PointerArgument],
    first_byte: int | None,
) -> PointerArgument | None:
    """The one pointer argument that ``registers`` are computed from; None when none or several are.

    ``steps`` is their backward slice, ``first_byte`` where the arguments begin in constant bank 0. Only
    what is added unscaled can be a base: a factor or a shifted operand is an index, whatever its value.
    """
    if first_byte is None:
        return None
    wanted = set(registers)
    found: set[PointerArgument] = set()
    for step in steps:
        hit = wanted.intersection(step.defines)
        if not hit:
            continue
        try:
            parsed = parse(step.text)
        except CrashlabError:
            return None
        if parsed.predicate is None:
            wanted -= hit
        for operand in _bases(parsed):
            if operand.address is not None:
                found |= _at(_constant_bytes(parsed, operand, hit), arguments, first_byte)
            elif operand.register is not None and operand.is_value_register:
                wanted |= _with_upper_half(operand.register) & set(step.reads)
    return found.pop() if len(found) == 1 else None


def _bases(parsed: ParsedInstruction) -> Sequence[Operand]:
    """The operands that may hold the base: those that the instruction adds without scaling them."""
    if parsed.access in ("load", "atomic") and parsed.space != "constant":
        return ()
    sources = [operand for operand in parsed.operands if not operand.is_predicate][1:]
    name = parsed.opcode.removeprefix("U")
    if name == "LEA":  # (a << shift) + b
        return sources[1:2]
    if name == "IMAD" and len(sources) == 3:  # a * b + c; times 1 is a plain sum
        return sources if sources[1].value == 1 else sources[2:]
    return sources


def _constant_bytes(parsed: ParsedInstruction, operand: Operand, hit: set[str]) -> Iterator[int]:
    """The bytes of constant bank 0 that give the registers ``hit``, by their first byte."""
    address = operand.address
    if address is None or address.bank != 0 or address.base is not None or address.uniform is not None:
        return
    if parsed.space != "constant":
        yield address.offset
        return
    target = next((o.register for o in parsed.operands if o.is_value_register), None)
    for name in hit:
        if target is not None and name[-1].isdecimal() and target[-1].isdecimal():
            yield address.offset + _WORD * (_number(name) - _number(target))


def _at(
    offsets: Iterator[int], arguments: Sequence[PointerArgument], first_byte: int
) -> set[PointerArgument]:
    return {a for at in offsets for a in arguments if a.offset <= at - first_byte < a.offset + 2 * _WORD}


def _with_upper_half(register: str) -> set[str]:
    if not register[-1].isdecimal():
        return {register}
    return {register, f"{register.rstrip('0123456789')}{_number(register) + 1}"}


def _number(register: str) -> int:
    return int(register.lstrip("UR"))
