"""Mangled C++ names to trees: the grammar of the Itanium C++ ABI, section 5.1 (itanium-cxx-abi).

Nodes are tuples, the first item naming the kind; :mod:`crashlab.cubin.itanium_text` has a method for
each and prints them. What kernels use is covered (templates, lambdas, packs, function pointers,
literals, the common expressions); anything else raises, and the name is shown as it is.
"""

from __future__ import annotations

from crashlab.cubin.itanium_expressions import Expressions
from crashlab.cubin.itanium_reader import (
    BUILTINS,
    D_BUILTINS,
    OPERATORS,
    QUALIFIERS,
    STD,
    Node,
    NotDemangledError,
)


class Parser(Expressions):
    """One pass over one name. ``parse()`` gives the tree of the whole name."""

    def parse(self) -> Node:
        """The tree of a function or variable; the text after it must be empty or a ``.suffix``."""
        self._expect("_Z")
        node = self._encoding()
        rest = self._text[self._at :]
        if rest and rest[0] != ".":
            raise NotDemangledError(rest)
        return ("clone", node, rest) if rest else node

    # Names

    def _encoding(self) -> Node:
        if self._peek() in ("T", "G") and self._peek(2) != "Ts":
            raise NotDemangledError("special name")
        self._deeper()
        qualifiers, name = self._name()
        if self._peek() in ("", "E", "."):
            self._depth -= 1
            return name
        returned = self._type() if _returns(name) else None
        parameters = self._types_until_end()
        self._depth -= 1
        return ("function", name, returned, parameters, qualifiers)

    def _types_until_end(self) -> tuple[Node, ...]:
        found = []
        while self._peek() not in ("", "E", "."):
            found.append(self._type())
            if self._peek(2) in ("RE", "OE"):  # ref-qualifier of a function type
                break
        return tuple(found) if found != [("name", "void")] else ()

    def _name(self) -> tuple[str, Node]:
        """Qualifiers of a member function, and the name."""
        here = self._peek()
        if here == "N":
            return self._nested()
        if here == "Z":
            return self._local()
        if here == "S" and self._peek(2) != "St":
            node = self._substitution()
        else:
            node = self._unscoped()
            if self._peek() == "I":
                self._remember(node)
        if self._peek() == "I":
            node = ("template", node, self._arguments())
        return "", node

    def _unscoped(self) -> Node:
        if self._accept("St"):
            return ("scoped", ("name", "std"), self._unqualified(None))
        return self._unqualified(None)

    def _nested(self) -> tuple[str, Node]:
        self._expect("N")
        self._deeper()
        qualifiers = self._qualifiers()
        reference = "&" if self._accept("R") else "&&" if self._accept("O") else ""
        node: Node | None = None
        while not self._accept("E"):
            here = self._peek()
            known = False
            if here == "S" and self._peek(2) != "St":
                node, known = self._substitution(), True
            elif self._accept("St"):
                node, known = ("name", "std"), True
            elif here == "T":
                node = self._parameter()
            elif here == "I" and node is not None:
                node = ("template", node, self._arguments())
            elif self._peek(2) in ("Dt", "DT"):
                node = self._decltype()
            elif here == "M" and node is not None:
                self._at += 1
                continue
            else:
                part = self._unqualified(node)
                node = part if node is None else ("scoped", node, part)
            if not known and self._peek() != "E":
                self._remember(node)
        if node is None:
            raise NotDemangledError("empty name")
        self._depth -= 1
        words = "".join(f" {word}" for word in qualifiers)
        return words + (f" {reference}" if reference else ""), node

    def _local(self) -> tuple[str, Node]:
        self._expect("Z")
        function = self._encoding()
        self._expect("E")
        if self._accept("s"):
            self._discriminator()
            return "", ("scoped", ("local", function), ("name", "string literal"))
        if self._accept("d"):
            number = self._number()
            self._expect("_")
            qualifiers, name = self._name()
            default = ("name", f"{{default arg#{1 if number is None else number + 2}}}")
            return qualifiers, ("scoped", ("scoped", ("local", function), default), name)
        qualifiers, name = self._name()
        self._discriminator()
        return qualifiers, ("scoped", ("local", function), name)

    def _discriminator(self) -> None:
        if self._accept("__"):
            self._number()
            self._expect("_")
        elif self._accept("_"):
            self._number()

    def _unqualified(self, scope: Node | None) -> Node:
        self._accept("L")  # internal linkage
        here = self._peek()
        if here.isdecimal():
            node: Node = ("name", self._source_name())
        elif self._accept("Ul"):
            parameters = self._types_until_end()
            self._expect("E")
            node = ("lambda", parameters, self._ordinal())
        elif self._accept("Ut"):
            node = ("name", f"{{unnamed type#{self._ordinal()}}}")
        elif here in ("C", "D") and scope is not None and self._peek(2)[1:].isdecimal():
            self._at += 2
            node = ("constructor" if here == "C" else "destructor", scope)
        elif here.islower():
            node = self._operator()
        else:
            raise NotDemangledError(f"name at {self._at}")
        while self._accept("B"):
            node = ("tagged", node, self._source_name())
        return node

    def _operator(self) -> Node:
        code = self._peek(2)
        if code == "cv":
            self._at += 2
            return ("conversion", self._type())
        if code == "li":
            self._at += 2
            return ("name", f'operator"" {self._source_name()}')
        if code not in OPERATORS:
            raise NotDemangledError(f"operator {code}")
        self._at += 2
        symbol = OPERATORS[code]
        return ("name", f"operator {symbol}" if symbol[0].isalpha() else f"operator{symbol}")

    def _substitution(self) -> Node:
        self._expect("S")
        letter = self._peek()
        if letter in STD and letter:
            self._at += 1
            return ("name", STD[letter])
        end = self._text.find("_", self._at)
        digits = self._text[self._at : end]
        if end < 0 or len(digits) > 4 or not all(d.isdecimal() or "A" <= d <= "Z" for d in digits):
            raise NotDemangledError("substitution")
        index = int(digits, 36) + 1 if digits else 0
        self._at = end + 1
        if index >= len(self._known):
            raise NotDemangledError("substitution of nothing")
        return self._known[index]

    # Template arguments

    def _parameter(self) -> Node:
        self._expect("T")
        return ("parameter", self._ordinal() - 1)

    def _arguments(self) -> tuple[Node, ...]:
        self._expect("I")
        self._deeper()
        found = []
        while not self._accept("E"):
            found.append(self._argument())
        self._depth -= 1
        return tuple(found)

    def _argument(self) -> Node:
        here = self._peek()
        if here == "L":
            return self._literal()
        if self._accept("X"):
            node = self._expression()
            self._expect("E")
            return node
        if here == "J":
            self._at += 1
            self._deeper()
            found = []
            while not self._accept("E"):
                found.append(self._argument())
            self._depth -= 1
            return ("pack", tuple(found))
        return self._type()

    def _literal(self) -> Node:
        self._expect("L")
        if self._accept("_Z"):
            node: Node = self._encoding()
            self._expect("E")
            return ("address", node)
        kind = self._type()
        end = self._text.find("E", self._at)
        value = self._text[self._at : end]
        if end < 0 or not all(c.isalnum() or c == "_" for c in value):
            raise NotDemangledError("literal")
        self._at = end + 1
        return ("literal", kind, value)

    # Types

    def _type(self) -> Node:
        self._deeper()
        node = self._compound()
        self._depth -= 1
        return node

    def _compound(self) -> Node:
        here = self._peek()
        if here in BUILTINS and here:
            self._at += 1
            return ("name", BUILTINS[here])
        if here in QUALIFIERS:
            words = self._qualifiers()
            return self._remember(("qualified", self._type(), " ".join(words)))
        if here in ("P", "R", "O"):
            self._at += 1
            mark = {"P": "*", "R": "&", "O": "&&"}[here]
            return self._remember(("pointer", mark, self._type()))
        if here == "F":
            return self._remember(self._function_type(""))
        if here == "A":
            return self._remember(self._array())
        if self._accept("M"):
            owner = self._type()
            return self._remember(("member", owner, self._type()))
        if here == "T":
            return self._templated(self._remember(self._parameter()))
        if here == "S" and self._peek(2) != "St":
            return self._templated(self._substitution())
        if here == "D":
            return self._d_type()
        if here == "u":
            self._at += 1
            return self._remember(("name", self._source_name()))
        if here == "U":
            self._at += 1
            word = self._source_name()
            return self._remember(("qualified", self._type(), word))
        _, node = self._name()
        return self._remember(node)

    def _templated(self, node: Node) -> Node:
        if self._peek() == "I":
            return self._remember(("template", node, self._arguments()))
        return node

    def _function_type(self, noexcept: str) -> Node:
        self._expect("F")
        self._accept("Y")
        returned = self._type()
        parameters = self._types_until_end()
        reference = " &" if self._accept("R") else " &&" if self._accept("O") else ""
        self._expect("E")
        return ("signature", returned, parameters, reference + noexcept)

    def _array(self) -> Node:
        self._expect("A")
        number = self._number()
        size: Node = ("name", "" if number is None else str(number))
        if number is None and self._peek() != "_":
            size = self._expression()
        self._expect("_")
        return ("array", size, self._type())

    def _d_type(self) -> Node:
        code = self._peek(2)
        if code in D_BUILTINS:
            self._at += 2
            return ("name", D_BUILTINS[code])
        if code == "Dp":
            self._at += 2
            return self._remember(("expansion", self._type()))
        if code in ("Dt", "DT"):
            return self._templated(self._remember(self._decltype()))
        if code == "Do":
            self._at += 2
            return self._remember(self._function_type(" noexcept"))
        if code == "DF":
            self._at += 2
            bits = self._number()
            if self._accept("b"):
                return ("name", f"std::bfloat{bits}_t")
            self._expect("_")
            return ("name", f"_Float{bits}")
        if code == "Dv":
            self._at += 2
            lanes = self._number()
            self._expect("_")
            return self._remember(("qualified", self._type(), f"__vector({lanes})"))
        raise NotDemangledError(f"type {code}")

    def _decltype(self) -> Node:
        self._at += 2
        node = self._expression()
        self._expect("E")
        return ("decltype", node)


def _returns(name: Node) -> bool:
    """Only a template's encoding carries its return type, and not that of a constructor or conversion."""
    while name[0] == "scoped":
        name = name[2]
    if name[0] != "template":
        return False
    inner = name[1]
    while inner[0] == "scoped":
        inner = inner[2]
    return inner[0] not in ("constructor", "destructor", "conversion")
