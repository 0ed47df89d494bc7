"""Address expressions: what stands in brackets, as base, uniform part, offset and descriptor."""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

import re
from typing import NamedTuple

from crashlab.sass import registers

_GROUP = re.compile(r"\[([^\[\]]*)\]")
_TERM = re.compile(
    r"(?P<sign>[-+]?)(?:(?P<hex>0x[0-9a-fA-F]{1,16})|(?P<number>\d{1,20})|(?P<reg>U?R(?:\d{1,3}|Z))(?P<suffix>(?:\.\w{1,8})*))",
    re.ASCII,
)
_SCALE = {"X4": 4, "X8": 8, "X16": 16}

_BANK = re.compile(r"0x[0-9a-f]{1,8}\Z")
_HOLDER = re.compile(r"U?R(?:\d{1,3}|Z)\Z", re.ASCII)


class AddressExpr(NamedTuple):
    """One bracketed operand. ``form`` is the word before the bracket, ``memory`` when there is none;
    ``policy`` is a lone ``desc[UR4]``, a cache policy and no address.

    The address is ``base * scale + uniform + offset``; ``base_bits`` 64 means that the base is a
    register pair. ``base_extension`` says how a 32-bit base is widened: ``U32`` or ``S32``, None when
    the text does not say. ``descriptor`` is the first of the uniform pair of ``desc[UR4]``, which
    takes no part in the sum. ``bank`` is N of ``c[N][…]``; ``bank_register`` is set for ``cx[UR4]``.
    ``role``: target, source, destination, coordinates, descriptor, barrier, matrix or shape.
    """

    form: str
    base: str | None = None
    base_bits: int = 32
    base_extension: str | None = None
    scale: int = 1
    uniform: str | None = None
    uniform_bits: int = 32
    offset: int = 0
    descriptor: str | None = None
    bank: int | None = None
    bank_register: str | None = None
    role: str = "target"
    space: str | None = None

    def address_registers(self) -> tuple[str, ...]:
        """Registers whose values make the address; constants, descriptors and banks left out."""
        found: tuple[str, ...] = ()
        if self.base is not None:
            found += registers.run(self.base, self.base_bits // 32)
        if self.uniform is not None:
            found += registers.run(self.uniform, self.uniform_bits // 32)
        return found

    def all_registers(self) -> tuple[str, ...]:
        """:meth:`address_registers` and those of the descriptor or bank."""
        found = self.address_registers()
        for holder in (self.descriptor, self.bank_register):
            if holder is not None:
                found += registers.run(holder, 2)
        return found


def parse_address(text: str) -> AddressExpr | None:
    """The expression, or None when the text has a shape that is not understood."""
    groups = list(_GROUP.finditer(text))
    if not groups:
        return None
    form = text[: groups[0].start()].lstrip("-~|!") or "memory"
    if form == "desc" and len(groups) == 1:  # the cache policy of a TMA instruction: no address
        return _held(AddressExpr("policy"), groups[0][1])
    expected = 2 if form in ("c", "cx", "desc") else 1
    if len(groups) != expected:
        return None
    expression = _sum(form, groups[-1][1])
    if expression is None or expected == 1:
        return expression
    if form == "c":
        bank = groups[0][1]
        return expression._replace(bank=int(bank, 16)) if _BANK.match(bank) else None
    return _held(expression, groups[0][1])


def _held(expression: AddressExpr, holder: str) -> AddressExpr | None:
    """Put in the register of the first bracket: a descriptor, or the bank of ``cx``."""
    register = holder.removesuffix(".64")
    if _HOLDER.match(register) is None:
        return None
    if expression.form == "cx":
        return expression._replace(bank_register=register)
    return expression._replace(descriptor=register)


def _sum(form: str, text: str) -> AddressExpr | None:
    expression = AddressExpr(form)
    at = 0
    while at < len(text):
        if at:
            if text[at] != "+":
                return None
            at += 1
        term = _TERM.match(text, at)
        if term is None:
            return None
        at = term.end()
        added = _add(expression, term)
        if added is None:
            return None
        expression = added
    return expression if text else None


def _add(expression: AddressExpr, term: re.Match[str]) -> AddressExpr | None:
    register = term["reg"]
    if register is None:
        value = int(term["hex"], 16) if term["hex"] else int(term["number"])
        return expression._replace(offset=expression.offset + (-value if term["sign"] == "-" else value))
    if term["sign"] == "-":
        return None
    suffixes = [suffix for suffix in term["suffix"].split(".") if suffix and suffix != "reuse"]
    bits = 64 if "64" in suffixes else 32
    if register.startswith("UR"):
        if expression.uniform is not None or any(suffix not in ("64", "U32", "S32") for suffix in suffixes):
            return None
        return expression._replace(uniform=register, uniform_bits=bits)
    if expression.base is not None:
        return None
    scale, extension = 1, None
    for suffix in suffixes:
        if suffix in _SCALE:
            scale = _SCALE[suffix]
        elif suffix in ("U32", "S32"):
            extension = suffix
        elif suffix != "64":
            return None
    return expression._replace(base=register, base_bits=bits, scale=scale, base_extension=extension)
