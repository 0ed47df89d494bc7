"""SASS text of sm_70 to sm_121 into facts: what an instruction accesses, defines and reads.

Both spellings are read, nvdisasm's (``STS.128 [R0], R4``) and cuda-gdb's (``STS.128 [R0],R4``). The
opcodes are data (:mod:`crashlab.sass.opcodes`); an opcode or a form of it that the table does not know
still parses, with ``defines`` and ``reads`` None, because liveness depends on never being wrong.
"""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

from typing import NamedTuple

from crashlab.sass import opcodes
from crashlab.sass.address import AddressExpr
from crashlab.sass.effects import effects, widen
from crashlab.sass.memory_size import access_bytes
from crashlab.sass.operand import Operand, parse_operand
from crashlab.sass.roles import with_roles
from crashlab.sass.shapes_bulk import coordinates
from crashlab.sass.tokens import split_text


class ParsedInstruction(NamedTuple):
    """One instruction.

    - ``opcode`` is the base name, ``modifiers`` what follows it (``LDG``, ``("E", "128")``).
    - ``predicate`` is the guarding register (``P2``, ``UP0``, ``PT``) or None; ``predicate_negated``
      is True for ``@!P2``.
    - ``known``: the table has the opcode. ``access``: load, store, atomic, reduce, copy, prefetch,
      cache, matrix, branch, call, return, exit, barrier, fence, trap; None when it is none of these.
    - ``space``: generic, global, shared, local, constant, tma, tensor, texture or surface; for LDGSTS
      and bulk copies each entry of ``addresses`` has its own.
    - ``width_bytes``: bytes that one lane accesses at its address; None when that makes no sense.
      ``address_lanes``: only the first N lanes give an address (LDSM, STSM); None means all.
    - ``defines`` and ``reads``: single registers (``R2``, ``R3``, ``UR4``, ``P0``, ``B1``), pairs and
      vectors spelled out, guard included in ``reads``; None when not known.
    - ``addresses``: the address expressions, constant operands not among them unless it is a load
      from constant memory. ``coordinates``: registers of a tensor copy's coordinates.
    """

    text: str
    opcode: str
    modifiers: tuple[str, ...] = ()
    predicate: str | None = None
    predicate_negated: bool = False
    known: bool = False
    access: str | None = None
    space: str | None = None
    width_bytes: int | None = None
    address_lanes: int | None = None
    defines: tuple[str, ...] | None = None
    reads: tuple[str, ...] | None = None
    addresses: tuple[AddressExpr, ...] = ()
    coordinates: tuple[str, ...] = ()
    operands: tuple[Operand, ...] = ()

    def target(self) -> int | None:
        """The absolute PC that a branch names, None for computed and unresolved targets."""
        if self.opcode not in ("BRA", "JMP", "CALL", "BSSY", "WARPSYNC"):
            return None
        last = self.operands[-1] if self.operands else None
        return last.value if last is not None and last.kind == "integer" else None


def parse(text: str) -> ParsedInstruction:
    """Parse one instruction. Raises CrashlabError for text that is no instruction at all."""
    tokens = split_text(text)
    row = opcodes.row(tokens.opcode)
    operands = tuple(parse_operand(operand) for operand in tokens.operands)
    operands = tuple(
        operand
        if operand.address is None
        else operand._replace(address=widen(operand.address, row, tokens.modifiers))
        for operand in operands
    )
    defines, reads = effects(row, tokens.opcode, tokens.modifiers, operands, tokens.predicate)
    found = ParsedInstruction(
        text,
        tokens.opcode,
        tokens.modifiers,
        tokens.predicate,
        tokens.negated,
        row is not None,
        row.access if row else None,
        row.space if row else None,
        defines=defines,
        reads=reads,
        operands=operands,
    )
    return found if row is None else _memory(found)


# Lanes of LDSM and STSM that supply a row address: eight a matrix.
_MATRIX_LANES = {"1": 8, "2": 16, "4": 32}
_NO_LANE_WIDTH = frozenset({"tma", "tensor", "texture", "surface"})


def _memory(found: ParsedInstruction) -> ParsedInstruction:
    if found.access is None or found.space is None:
        return found
    addresses = with_roles(found.opcode, found.modifiers, found.space, found.operands)
    width: int | None = None
    lanes: int | None = None
    if found.opcode in ("LDSM", "STSM"):
        width, lanes = 16, _MATRIX_LANES.get(found.modifiers[-1] if found.modifiers else "")
    elif found.opcode in ("SYNCS", "ARRIVES"):
        width = 8 if addresses else None
    elif addresses and found.space not in _NO_LANE_WIDTH and found.access not in ("cache", "prefetch"):
        width = access_bytes(found.modifiers)
    return found._replace(
        addresses=addresses,
        width_bytes=width,
        address_lanes=lanes,
        coordinates=coordinates(found.opcode, found.modifiers, found.operands),
    )
