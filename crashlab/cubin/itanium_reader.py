"""Reading mangled names: the vocabulary of the Itanium C++ ABI, and a position in one name."""

from __future__ import annotations

from typing import Any

Node = tuple[Any, ...]

_MAX_DEPTH = 96
"""Nesting that is followed; Python's own limit is 1,000 frames, of which a level takes up to five."""

BUILTINS = {
    "v": "void", "w": "wchar_t", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char",
    "s": "short", "t": "unsigned short", "i": "int", "j": "unsigned int", "l": "long",
    "m": "unsigned long", "x": "long long", "y": "unsigned long long", "n": "__int128",
    "o": "unsigned __int128", "f": "float", "d": "double", "e": "long double", "g": "__float128",
    "z": "...",
}  # fmt: skip
D_BUILTINS = {
    "Dn": "decltype(nullptr)", "Da": "auto", "Dc": "decltype(auto)", "Di": "char32_t",
    "Ds": "char16_t", "Du": "char8_t", "Dh": "_Float16", "Df": "decimal32", "Dd": "decimal64",
}  # fmt: skip
STD = {
    "a": "std::allocator", "b": "std::basic_string", "s": "std::string", "i": "std::istream",
    "o": "std::ostream", "d": "std::iostream",
}  # fmt: skip
OPERATORS = {
    "nw": "new", "na": "new[]", "dl": "delete", "da": "delete[]", "ps": "+", "ng": "-", "ad": "&",
    "de": "*", "co": "~", "pl": "+", "mi": "-", "ml": "*", "dv": "/", "rm": "%", "an": "&", "or": "|",
    "eo": "^", "aS": "=", "pL": "+=", "mI": "-=", "mL": "*=", "dV": "/=", "rM": "%=", "aN": "&=",
    "oR": "|=", "eO": "^=", "ls": "<<", "rs": ">>", "lS": "<<=", "rS": ">>=", "eq": "==", "ne": "!=",
    "lt": "<", "gt": ">", "le": "<=", "ge": ">=", "ss": "<=>", "nt": "!", "aa": "&&", "oo": "||",
    "pp": "++", "mm": "--", "cm": ",", "pm": "->*", "pt": "->", "cl": "()", "ix": "[]", "qu": "?",
}  # fmt: skip
UNARY = frozenset(("ps", "ng", "ad", "de", "co", "nt"))
BINARY = frozenset((
    "pl", "mi", "ml", "dv", "rm", "an", "or", "eo", "ls", "rs", "eq", "ne", "lt", "gt", "le", "ge", "aa",
    "oo",
))  # fmt: skip
QUALIFIERS = {"r": "restrict", "V": "volatile", "K": "const"}


class NotDemangledError(Exception):
    """The name is no mangled name, or one of the rare kinds. Never leaves the package."""


class Reader:
    """A position in one name, the nesting there, and the substitutions seen so far."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._depth = text, 0, 0
        self._known: list[Node] = []

    def _peek(self, size: int = 1) -> str:
        return self._text[self._at : self._at + size]

    def _accept(self, text: str) -> bool:
        if self._text.startswith(text, self._at):
            self._at += len(text)
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise NotDemangledError(f"{text} expected at {self._at}")

    def _number(self) -> int | None:
        start = self._at
        while self._peek().isdecimal() and self._at - start < 9:
            self._at += 1
        return int(self._text[start : self._at]) if self._at > start else None

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise NotDemangledError("nested too deeply")

    def _remember(self, node: Node) -> Node:
        self._known.append(node)
        return node

    def _ordinal(self) -> int:
        number = self._number()
        self._expect("_")
        return 1 if number is None else number + 2

    def _source_name(self) -> str:
        size = self._number()
        if not size or size > len(self._text) - self._at:
            raise NotDemangledError("length of a name")
        text = self._text[self._at : self._at + size]
        self._at += size
        # How compilers spell the unnamed namespace of a file; NVIDIA's appends the file's name.
        anonymous = text.startswith("_GLOBAL_") and text[8:9] in ("_", ".", "$") and text[9:10] == "N"
        return "(anonymous namespace)" if anonymous else text

    def _qualifiers(self) -> list[str]:
        found = []
        while self._peek() in QUALIFIERS and self._peek():
            found.append(QUALIFIERS[self._peek()])
            self._at += 1
        return found[::-1]
