"""The value an integer instruction computes, exactly, from the values of its operands.

Only what addresses are made of, and only forms whose meaning is certain: everything else is None.
The meanings were checked by evaluating compiled expressions and comparing with the source language
(``tests/unit/sass/test_evaluate.py``).
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from crashlab.sass import arithmetic, registers, selection
from crashlab.sass.machine import Machine, Read, Values, constant_words
from crashlab.sass.operands import ParsedInstruction


def evaluate(parsed: ParsedInstruction, read: Read) -> Values | None:
    """Registers that ``parsed`` defines with their values, some None when only part is known.

    ``read`` gives the value before the instruction, by name: ``R2``, ``P0`` (0 or 1), ``SR_TID.X``,
    ``c[0x0][0x160]`` (32-bit words). None for instructions that are not understood. The guard is the
    caller's business.
    """
    rule = _RULES.get(parsed.opcode)
    if rule is None or parsed.defines is None:
        return None
    found = rule(Machine(parsed, read))
    if found is None:
        return None
    return {name: found.get(name) for name in parsed.defines}


def _move(machine: Machine) -> Values | None:
    if not machine.values:
        return None
    bits = 64 if "64" in machine.modifiers else 32
    return machine.write(machine.word(machine.values[0], bits), bits)


def _special(machine: Machine) -> Values | None:
    if len(machine.sources) != 1:
        return None
    name = machine.sources[0].text
    return machine.write(0 if name == "SRZ" else machine.read(name))


def _special_pair(machine: Machine) -> Values | None:
    if len(machine.sources) != 1 or machine.sources[0].text != "SRZ":
        return None
    bits = 32 if "32" in machine.modifiers else 64
    return machine.write(0, bits)


def _constant(machine: Machine) -> Values | None:
    size = {"32": 1, "64": 2, "128": 4}
    sizes = [modifier for modifier in machine.modifiers if modifier not in size]
    if len(machine.sources) != 1 or sizes:
        return None
    count = max((size[modifier] for modifier in machine.modifiers), default=1)
    names = constant_words(machine.sources[0], machine.read, count)
    target = machine.target.register if machine.target and machine.target.register else "RZ"
    words = [machine.read(name) for name in names] if names else [None] * count
    return dict(zip(registers.run(target, count), words, strict=False))


def _half_constant(machine: Machine) -> Values | None:
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


_RULES: dict[str, Callable[[Machine], Values | None]] = {
    **dict.fromkeys(("IADD3", "UIADD3", "VIADD", "UVIADD", "IADD"), arithmetic.iadd3),
    **dict.fromkeys(("IMAD", "UIMAD"), arithmetic.imad),
    **dict.fromkeys(("LEA", "ULEA"), arithmetic.lea),
    **dict.fromkeys(("SHF", "USHF"), arithmetic.shf),
    **dict.fromkeys(("LOP3", "ULOP3"), selection.lop3),
    **dict.fromkeys(("MOV", "UMOV"), _move),
    **dict.fromkeys(("SEL", "USEL"), selection.select),
    **dict.fromkeys(("ISETP", "UISETP"), selection.isetp),
    **dict.fromkeys(("IMNMX", "UIMNMX", "VIMNMX", "UVIMNMX"), selection.minmax),
    **dict.fromkeys(("IABS", "UIABS"), selection.absolute),
    **dict.fromkeys(("S2R", "S2UR"), _special),
    **dict.fromkeys(("CS2R", "CS2UR"), _special_pair),
    **dict.fromkeys(("LDC", "ULDC", "LDCU"), _constant),
    "HFMA2": _half_constant,
    **dict.fromkeys(("PRMT", "UPRMT"), selection.permute),
}
