"""Which of an instruction's addresses is the source, the destination, the barrier, the descriptor."""

from __future__ import annotations

from collections.abc import Sequence

from crashlab.sass import registers
from crashlab.sass.address import AddressExpr
from crashlab.sass.operand import Operand

# Opcode: role and space of each address in nvdisasm's order.
_ROLES: dict[str, tuple[tuple[str, str], ...]] = {
    "UTMALDG": (("destination", "shared"), ("descriptor", "generic")),
    "UTMASTG": (("source", "shared"), ("descriptor", "generic")),
    "UTMAREDG": (("source", "shared"), ("descriptor", "generic")),
    "UTMAPF": (("coordinates", "tma"), ("descriptor", "generic")),
    "UTMACCTL": (("descriptor", "generic"),),
    "UTCBAR": (("barrier", "shared"),),
    "UGETNEXTWORKID": (("destination", "shared"), ("barrier", "shared")),
    "STAS": (("destination", "shared"),),
    "REDAS": (("destination", "shared"),),
}
_BULK_SPACES = {"S": "shared", "G": "global"}
_FORM_ROLES = {"gdesc": "matrix", "idesc": "shape", "policy": "policy"}


def with_roles(
    opcode: str, modifiers: tuple[str, ...], space: str, operands: Sequence[Operand]
) -> tuple[AddressExpr, ...]:
    """The address expressions of an access, each with its role and space.

    Constant operands (``c[0x0][0x160]``) are addresses only in loads from constant memory. The
    mbarrier of an asynchronous copy has no bracket of its own: it is in the register behind the
    shared address, and is added as a further expression.
    """
    found = [operand.address for operand in operands if operand.address is not None]
    if space != "constant":
        found = [address for address in found if address.form not in ("c", "cx")]
    if opcode == "LDGSTS":
        return _async_copy(found)
    roles = _ROLES.get(opcode, ())
    ends = [_BULK_SPACES[m] for m in modifiers if m in _BULK_SPACES]
    if opcode in ("UBLKCP", "UBLKRED") and len(ends) == 2:
        roles = (("destination", ends[0]), ("source", ends[1]))
    placed = [_placed(address, *role) for address, role in zip(found, roles, strict=False)]
    placed += [
        address._replace(space=space, role=_FORM_ROLES.get(address.form, "target"))
        for address in found[len(placed) :]
    ]
    asynchronous = opcode in ("UTMALDG", "STAS", "REDAS") or (
        opcode in ("UBLKCP", "UBLKRED") and ends[:1] == ["shared"]
    )
    barrier = _barrier_behind(placed[0]) if asynchronous and placed else None
    if barrier is not None:
        placed.insert(1, barrier)
    return tuple(address for address in placed if address.role != "coordinates")


def _placed(address: AddressExpr, role: str, space: str) -> AddressExpr:
    bits = 32 if space in ("shared", "tma") else 64
    return address._replace(role=role, space=space, base_bits=bits, uniform_bits=bits)


def _barrier_behind(address: AddressExpr) -> AddressExpr | None:
    run = registers.run(address.uniform or address.base or "RZ", 2)
    if len(run) < 2:
        return None
    if address.uniform:
        return AddressExpr("memory", uniform=run[1], role="barrier", space="shared")
    return AddressExpr("memory", base=run[1], role="barrier", space="shared")


def _async_copy(found: Sequence[AddressExpr]) -> tuple[AddressExpr, ...]:
    """cuda-gdb prints the two addresses of LDGSTS in the other order: tell them by their width."""
    wide = [
        address.form == "desc" or address.base_bits == 64 or address.uniform_bits == 64 for address in found
    ]
    if not any(wide) and len(found) == 2:
        wide[1] = True
    return tuple(
        address._replace(role="source", space="global")
        if is_source
        else address._replace(role="destination", space="shared")
        for address, is_source in zip(found, wide, strict=True)
    )
