"""Register counts that a table row cannot state, by the name that the row gives (``f=NAME``).

Each function takes the modifiers and operands of one instruction and gives a :class:`Shape`, or None
when the form is not known: then the caller says "unknown" and does not guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from crashlab.sass import shapes_bulk, shapes_matrix
from crashlab.sass.memory_size import access_bytes, registers_for
from crashlab.sass.operand import Operand
from crashlab.sass.shape import Modifiers, Shape, before_address


def shape_of(name: str, opcode: str, modifiers: Modifiers, operands: Sequence[Operand]) -> Shape | None:
    """The shape of one instruction by the function that its table row names."""
    if name == "mma":
        return shapes_matrix.mma(opcode, modifiers, operands)
    return _SHAPES[name](modifiers, operands)


def _packed(_: Modifiers, operands: Sequence[Operand]) -> Shape | None:
    """Two floats at once (sm_100): ``R2.F32x2.HI_LO`` is a pair, ``R2.F32`` one register for both."""
    widths = [2]
    for operand in operands[1:]:
        if operand.is_value_register and not operand.selectors and operand.register not in ("RZ", "URZ"):
            return None
        widths.append(1 if "F32" in operand.selectors else 2)
    return Shape(1, tuple(widths))


def _f2f(modifiers: Modifiers, _: Sequence[Operand]) -> Shape | None:
    types = [modifier for modifier in modifiers if re.fullmatch(r"B?F16|F32|F64|TF32", modifier)]
    if len(types) != 2:
        return None if "F64" in modifiers else Shape(1)
    return Shape(1, (2 if types[0] == "F64" else 1, 2 if types[1] == "F64" else 1))


def _vote(_: Modifiers, operands: Sequence[Operand]) -> Shape:
    return Shape(2 if len(operands) == 3 else 1)


def _masked_predicates(operands: Sequence[Operand]) -> tuple[str, ...]:
    """The predicates that the mask of R2P and P2R names: bit n is predicate n."""
    prefix = "UP" if any(operand.register == "UPR" for operand in operands) else "P"
    mask = next((operand.value for operand in reversed(operands) if operand.value is not None), 0x7F)
    return tuple(f"{prefix}{bit}" for bit in range(7) if mask >> bit & 1)


def _to_predicates(_: Modifiers, operands: Sequence[Operand]) -> Shape:
    return Shape(0, defines=_masked_predicates(operands))


def _from_predicates(_: Modifiers, operands: Sequence[Operand]) -> Shape:
    return Shape(1, reads=_masked_predicates(operands))


def _bmov(modifiers: Modifiers, operands: Sequence[Operand]) -> Shape:
    cleared = tuple(o.register for o in operands[1:] if o.kind == "barrier" and o.register)
    return Shape(1, (2 if "64" in modifiers else 1,), defines=cleared if "CLEAR" in modifiers else ())


def _break(_: Modifiers, operands: Sequence[Operand]) -> Shape:
    return Shape(0, defines=tuple(o.register for o in operands if o.kind == "barrier" and o.register))


def _syncs(modifiers: Modifiers, operands: Sequence[Operand]) -> Shape | None:
    """mbarrier operations: the state is 64 bits, the arrival count or the parity is 32."""
    leading = before_address(operands)
    if "PHASECHK" in modifiers or "CCTL" in modifiers:
        return Shape(leading)
    if "ARRIVE" in modifiers:
        return Shape(leading, (2,) * leading + (0, 1))
    if ("EXCH" in modifiers or "CAS" in modifiers or "LD" in modifiers) and "64" in modifiers:
        return Shape(leading, (2,) * leading + (0, 2))
    return None


def _arrives(_: Modifiers, operands: Sequence[Operand]) -> Shape:
    return Shape(before_address(operands))


def _utc_atom(modifiers: Modifiers, operands: Sequence[Operand]) -> Shape:
    return Shape(2 if operands and operands[0].is_predicate else 1)


def _texture(_: Modifiers, operands: Sequence[Operand]) -> Shape | None:
    """Components x and y go to the second operand, z and w to the first; the mask stands last.

    How many coordinates are read depends on geometry and options: not told here. Packed halves
    (``.F16``) define fewer registers than this says, never more.
    """
    if len(operands) < 3 or not (operands[0].is_value_register and operands[1].is_value_register):
        return None
    mask = operands[-1].value
    count = bin(mask).count("1") if mask is not None and 0 < mask < 16 else 4
    return Shape(2, (max(1, count - 2), min(2, count), 1), reads_known=False)


def _surface_load(modifiers: Modifiers, operands: Sequence[Operand]) -> Shape | None:
    """``.D`` loads raw bytes of the named size; formatted loads (``.P``) are not known."""
    size = access_bytes(tuple(m for m in modifiers if not m.endswith("D")))
    if "D" not in modifiers or size is None or not operands:
        return None
    return Shape(before_address(operands), (registers_for(size),), reads_known=False)


def _opaque(_: Modifiers, __: Sequence[Operand]) -> Shape:
    return Shape(0, reads_known=False)


_SHAPES: dict[str, Callable[[Modifiers, Sequence[Operand]], Shape | None]] = {
    "packed": _packed,
    "f2f": _f2f,
    "vote": _vote,
    "to_predicates": _to_predicates,
    "from_predicates": _from_predicates,
    "bmov": _bmov,
    "break": _break,
    "syncs": _syncs,
    "arrives": _arrives,
    "utc_atom": _utc_atom,
    "opaque": _opaque,
    "texture": _texture,
    "surface_load": _surface_load,
    "matrix_tile": shapes_matrix.matrix_tile,
    "tensor_memory": shapes_matrix.tensor_memory,
    "warpgroup_mma": shapes_matrix.warpgroup_mma,
    "utc_mma": shapes_matrix.utc_mma,
    "tma_load": shapes_bulk.tma_load,
    "tma_store": shapes_bulk.tma_store,
    "pairs": shapes_bulk.pairs,
    "bulk": shapes_bulk.bulk,
    "bulk_prefetch": shapes_bulk.bulk_prefetch,
    "tma_prefetch": shapes_bulk.tma_prefetch,
}
