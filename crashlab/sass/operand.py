"""One operand: a register with its signs and selectors, an immediate, an address or a word."""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

import re
from typing import NamedTuple

from crashlab.sass.address import AddressExpr, parse_address

_REGISTER = re.compile(
    r"(?P<sign>[-~!]{0,2})(?P<bar>\|?)(?P<name>(?:UR|R)(?:\d{1,3}|Z)|U?P[0-6T]|B(?:1[0-5]|\d)|U?PR)"
    r"(?P<inner>(?:\.\w{1,12}){0,3})\|?(?P<outer>(?:\.\w{1,12}){0,3})\Z",
    re.ASCII,  # without it \d also takes the digits of other scripts
)
_INTEGER = re.compile(r"([-~]?)(?:0x([0-9a-fA-F]{1,16})|(\d{1,19}))\Z", re.ASCII)
_FLOAT = re.compile(
    r"[-+|]*(?:\d{1,24}\.?\d{0,40}(?:e[-+]?\d{1,5})?|INF|QNAN|SNAN)\|?\Z", re.IGNORECASE | re.ASCII
)
_KINDS = {"R": "register", "UR": "uniform", "P": "predicate", "UP": "uniform-predicate", "B": "barrier"}


class Operand(NamedTuple):
    """``kind``: register, uniform, predicate, uniform-predicate, barrier, predicates (``PR``),
    integer, float, address, label or word.

    ``sign`` is ``-``, ``~``, ``!`` or empty, ``absolute`` is ``|R0|``; ``selectors`` are the parts
    behind the register (``H0_H0``, ``B1``, ``F32``) without ``reuse``, which only hints at the cache.
    """

    text: str
    kind: str
    register: str | None = None
    sign: str = ""
    absolute: bool = False
    selectors: tuple[str, ...] = ()
    value: int | None = None
    address: AddressExpr | None = None

    @property
    def is_predicate(self) -> bool:
        return self.kind in ("predicate", "uniform-predicate")

    @property
    def is_value_register(self) -> bool:
        return self.kind in ("register", "uniform")


def parse_operand(text: str) -> Operand:
    """Classify one operand text; what is not understood becomes a ``word``."""
    register = _REGISTER.match(text)
    if register:
        return _register(text, register)
    if "`" in text or text.startswith("("):
        return Operand(text, "label")
    if "[" in text:
        address = parse_address(text)
        return Operand(text, "word") if address is None else _address(text, address)
    integer = _INTEGER.match(text)
    if integer:
        sign, digits, decimal = integer.groups()
        value = int(digits, 16) if digits else int(decimal)
        return Operand(text, "integer", sign=sign, value={"-": -value, "~": ~value}.get(sign, value))
    return Operand(text, "float" if _FLOAT.match(text) else "word")


def _register(text: str, found: re.Match[str]) -> Operand:
    name = found["name"]
    parts = (found["inner"] + found["outer"]).split(".")
    selectors = tuple(part for part in parts if part and part != "reuse")
    kind = "predicates" if name in ("PR", "UPR") else _KINDS[name.rstrip("0123456789ZT")]
    return Operand(text, kind, name, found["sign"], bool(found["bar"]), selectors)


def _address(text: str, address: AddressExpr) -> Operand:
    sign = text[0] if text[0] in "-~!" else ""
    selectors = tuple(part for part in text[text.rfind("]") + 1 :].strip("|").split(".") if part)
    return Operand(text, "address", None, sign, "|" in text, selectors, None, address)
