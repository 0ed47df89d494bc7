"""Expressions in template arguments, array bounds and ``decltype`` (Itanium C++ ABI, 5.1.6)."""

from __future__ import annotations

from crashlab.cubin.itanium_reader import BINARY, OPERATORS, UNARY, Node, NotDemangledError, Reader


class Expressions(Reader):
    """The expression rules; the rules they refer to come with the parser."""

    def _type(self) -> Node:
        raise NotImplementedError

    def _literal(self) -> Node:
        raise NotImplementedError

    def _parameter(self) -> Node:
        raise NotImplementedError

    def _arguments(self) -> tuple[Node, ...]:
        raise NotImplementedError

    def _expression(self) -> Node:
        self._deeper()
        node = self._expression_at()
        self._depth -= 1
        return node

    def _expression_at(self) -> Node:
        here, code = self._peek(), self._peek(2)
        if here == "L":
            return self._literal()
        if here == "T":
            return self._parameter()
        if code in ("fp", "fL"):
            return self._function_parameter()
        if code == "sr":
            return self._member_of_type()
        if code in ("sZ", "sp", "st", "sz"):
            self._at += 2
            inner = self._type() if code == "st" else self._expression()
            return ("expansion", inner) if code == "sp" else ("sizeof", inner, code == "sZ")
        if code in ("cl", "cv"):
            return self._call(code)
        if code in UNARY:
            self._at += 2
            return ("unary", OPERATORS[code], self._expression())
        if code in BINARY:
            self._at += 2
            left = self._expression()
            return ("binary", OPERATORS[code], left, self._expression())
        if code == "qu":
            self._at += 2
            condition = self._expression()
            chosen = self._expression()
            return ("choice", condition, chosen, self._expression())
        if here.isdecimal():
            return self._simple_id()
        raise NotDemangledError(f"expression {code}")

    def _simple_id(self) -> Node:
        node: Node = ("name", self._source_name())
        return ("template", node, self._arguments()) if self._peek() == "I" else node

    def _function_parameter(self) -> Node:
        if self._accept("fL"):
            self._number()
            self._expect("p")
        else:
            self._expect("fp")
        self._qualifiers()
        return ("name", f"{{parm#{self._ordinal()}}}")

    def _member_of_type(self) -> Node:
        self._expect("sr")
        start = self._at
        nested = self._accept("N")
        owner = self._type() if nested or not self._peek().isdecimal() else self._simple_id()
        levels = [owner]
        while self._peek().isdecimal():
            levels.append(self._simple_id())
        if nested or (self._peek() == "E" and self._peek(2)[1:].isdecimal()):  # scopes, E, member
            self._expect("E")
            levels.append(self._simple_id())
        elif len(levels) > 2:
            raise NotDemangledError(f"member at {start}")
        node = levels[0]
        for level in levels[1:]:
            node = ("scoped", node, level)
        return node

    def _call(self, code: str) -> Node:
        self._at += 2
        if code == "cv":
            target = self._type()
            if not self._accept("_"):
                return ("cast", target, (self._expression(),))
        else:
            target = self._expression()
        found = []
        while not self._accept("E"):
            found.append(self._expression())
        return ("cast" if code == "cv" else "call", target, tuple(found))
