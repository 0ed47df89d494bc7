"""Trees of mangled names to text, in the spelling of GNU's demangler (and so of cuda-gdb and c++filt).

A name of 300 characters can stand for gigabytes of text, because substitutions double it again and
again; the system's ``__cxa_demangle`` writes them all (109 MB and 2 s for 256 characters). Printing
here gives up after a number of nodes and characters.
"""

from __future__ import annotations

from collections.abc import Iterable

from crashlab.cubin.itanium_reader import Node, NotDemangledError

_MAX_NODES = 60_000
_MAX_TEXT = 1 << 16
_MAX_DEPTH = 200

_SUFFIXES = {
    "int": "",
    "unsigned int": "u",
    "long": "l",
    "unsigned long": "ul",
    "long long": "ll",
    "unsigned long long": "ull",
}
_SIMPLE = frozenset(("name", "scoped"))


class Printer:
    """Prints one tree; a new one for each name.

    Types come in two parts, what stands left and right of a declared name: ``void (*`` and ``)(int)``.
    """

    def __init__(self) -> None:
        self._nodes = self._depth = 0
        self._arguments: tuple[Node, ...] = ()
        self._element: int | None = None
        self._in_lambda = False

    def text(self, node: Node) -> str:
        """The node as one piece of text."""
        left, right = self._show(node)
        return left + right

    def _show(self, node: Node) -> tuple[str, str]:
        self._nodes += 1
        self._depth += 1
        if self._nodes > _MAX_NODES or self._depth > _MAX_DEPTH:
            raise NotDemangledError("too large")
        show = getattr(self, f"_{node[0]}")
        shown = show(*node[1:])
        self._depth -= 1
        left, right = shown if isinstance(shown, tuple) else (shown, "")
        if len(left) + len(right) > _MAX_TEXT:
            raise NotDemangledError("too long")
        return left, right

    def _list(self, nodes: Iterable[Node]) -> list[str]:
        """Texts of a list of arguments or parameters; packs and expansions give none, one or many."""
        found: list[str] = []
        for node in nodes:
            if node[0] == "expansion":
                found.extend(self._expand(node[1]))
            elif node[0] == "pack":
                found.extend(self._list(node[1]))
            elif node[0] == "parameter" and self._resolve(node)[0] == "pack":
                found.extend(self._list(self._resolve(node)[1]))
            else:
                found.append(self.text(node))
        return found

    # Names

    def _name(self, text: str) -> str:
        return text

    def _scoped(self, scope: Node, part: Node) -> str:
        return f"{self.text(scope)}::{self.text(part)}"

    def _template(self, base: Node, arguments: tuple[Node, ...]) -> str:
        name = self.text(base)
        inside = ", ".join(self._list(arguments))
        return f"{name}{' ' if name.endswith('<') else ''}<{inside}{' ' if inside.endswith('>') else ''}>"

    def _tagged(self, base: Node, tag: str) -> str:
        return f"{self.text(base)}[abi:{tag}]"

    def _clone(self, node: Node, suffix: str) -> str:
        return f"{self.text(node)} [clone {suffix}]"

    def _constructor(self, scope: Node) -> str:
        while scope[0] in ("scoped", "template", "tagged"):
            scope = scope[2] if scope[0] == "scoped" else scope[1]
        return self.text(scope).rpartition("::")[2]

    def _destructor(self, scope: Node) -> str:
        return "~" + self._constructor(scope)

    def _conversion(self, target: Node) -> str:
        return f"operator {self.text(target)}"

    def _lambda(self, parameters: tuple[Node, ...], number: int) -> str:
        outside, self._in_lambda = self._in_lambda, True
        inside = ", ".join(self._list(parameters))
        self._in_lambda = outside
        return f"{{lambda({inside})#{number}}}"

    def _local(self, function: Node) -> str:
        if function[0] == "function":
            function = ("function", function[1], None, *function[3:])
        return self.text(function)

    def _function(
        self, name: Node, returned: Node | None, parameters: tuple[Node, ...], qualifiers: str
    ) -> str:
        outside = self._arguments, self._in_lambda
        own = _last_arguments(name)
        if own is not None:
            self._arguments = own
        self._in_lambda = False
        text = f"{self.text(name)}({', '.join(self._list(parameters))}){qualifiers}"
        if returned is not None:
            left, right = self._show(returned)
            text = f"{left}{'' if right else ' '}{text}{right}"
        self._arguments, self._in_lambda = outside
        return text

    # Types

    def _pointer(self, mark: str, target: Node) -> tuple[str, str]:
        resolved = self._resolve(target)
        if mark != "*" and resolved[0] == "pointer" and resolved[1] != "*":  # references collapse
            mark = mark if mark == "&" else resolved[1]
            target = resolved[2]
        left, right = self._show(target)
        return self._declare(target, left, right, mark)

    def _member(self, owner: Node, target: Node) -> tuple[str, str]:
        left, right = self._show(target)
        mark = f"{self.text(owner)}::*"
        if self._kind(target) not in ("signature", "array"):
            return f"{left} {mark}", right
        return self._declare(target, left, right, mark)

    def _declare(self, target: Node, left: str, right: str, mark: str) -> tuple[str, str]:
        kind = self._kind(target)
        if kind == "signature":
            return f"{left}({mark}", f"){right}"
        if kind == "array":
            return f"{left} ({mark}", f"){right}"
        return left + mark, right

    def _qualified(self, target: Node, words: str) -> tuple[str, str]:
        left, right = self._show(target)
        if self._kind(target) == "signature":
            return left, f"{right} {words}"
        return (left, right) if left.endswith(f" {words}") else (f"{left} {words}", right)

    def _signature(self, returned: Node, parameters: tuple[Node, ...], suffix: str) -> tuple[str, str]:
        left, right = self._show(returned)
        gap = "" if right else " "  # a returned function pointer goes around the declarator
        return left + gap, f"({', '.join(self._list(parameters))}){suffix}{right}"

    def _array(self, size: Node, element: Node) -> tuple[str, str]:
        left, right = self._show(element)
        return left, f" [{self.text(size)}]{right.lstrip()}"

    def _parameter(self, number: int) -> tuple[str, str]:
        if self._in_lambda:
            return f"auto:{number + 1}", ""
        resolved = self._resolve(("parameter", number))
        if resolved[0] == "pack":
            return ", ".join(self._list(resolved[1])), ""
        return self._show(resolved)

    def _pack(self, nodes: tuple[Node, ...]) -> str:
        return ", ".join(self._list(nodes))

    def _expansion(self, pattern: Node) -> str:
        return ", ".join(self._expand(pattern))

    def _decltype(self, expression: Node) -> str:
        return f"decltype ({self.text(expression)})"

    def _resolve(self, node: Node) -> Node:
        """What a template parameter stands for; other nodes stand for themselves."""
        for _ in range(_MAX_DEPTH):
            if node[0] != "parameter" or self._in_lambda:
                return node
            if node[1] >= len(self._arguments):
                raise NotDemangledError("template parameter of nothing")
            node = self._arguments[node[1]]
            if node[0] == "pack" and self._element is not None:
                if self._element >= len(node[1]):
                    raise NotDemangledError("packs of different lengths")
                node = node[1][self._element]
        raise NotDemangledError("template parameters in a circle")

    def _kind(self, node: Node) -> str:
        node = self._resolve(node)
        while node[0] == "qualified":
            node = self._resolve(node[1])
        kind: str = node[0]
        return kind

    def _expand(self, pattern: Node) -> list[str]:
        """The pattern once for every element of the pack in it."""
        if self._in_lambda or self._element is not None or (length := self._pack_length(pattern)) is None:
            return [self.text(pattern) + "..."]
        found = []
        for self._element in range(length):
            found.append(self.text(pattern))
        self._element = None
        return found

    def _pack_length(self, pattern: Node) -> int | None:
        pending: list[object] = [pattern]
        while pending:
            self._nodes += 1
            if self._nodes > _MAX_NODES:
                raise NotDemangledError("too large")
            item = pending.pop()
            if not isinstance(item, tuple):
                continue
            if len(item) == 2 and item[0] == "parameter" and item[1] < len(self._arguments):
                argument = self._arguments[item[1]]
                if argument[0] == "pack":
                    return len(argument[1])
            pending.extend(reversed(item))
        return None

    # Expressions

    def _literal(self, kind: Node, value: str) -> str:
        name = self.text(kind)
        number = f"-{value[1:]}" if value.startswith("n") else value
        if name == "bool" and value in ("0", "1"):
            return "true" if value == "1" else "false"
        if name in _SUFFIXES:
            return number + _SUFFIXES[name]
        return f"({name})[{value}]" if name in ("float", "double") else f"({name}){number}"

    def _address(self, node: Node) -> str:
        return self.text(node)

    def _operand(self, node: Node) -> str:
        return self.text(node) if node[0] in _SIMPLE else f"({self.text(node)})"

    def _unary(self, symbol: str, operand: Node) -> str:
        if symbol == "&" and operand[0] == "address" and operand[1][0] == "function":
            name = operand[1][1]
            operand = name if name[0] == "scoped" else operand  # GNU's rule: of members, the name alone
        return symbol + self._operand(operand)

    def _binary(self, symbol: str, left: Node, right: Node) -> str:
        text = f"{self._operand(left)}{symbol}{self._operand(right)}"
        return f"({text})" if symbol == ">" else text

    def _choice(self, condition: Node, chosen: Node, other: Node) -> str:
        return f"{self._operand(condition)}?{self._operand(chosen)} : {self._operand(other)}"

    def _call(self, target: Node, arguments: tuple[Node, ...]) -> str:
        return f"{self._operand(target)}({', '.join(self._list(arguments))})"

    def _cast(self, target: Node, arguments: tuple[Node, ...]) -> str:
        return f"({self.text(target)})({', '.join(self._list(arguments))})"

    def _sizeof(self, operand: Node, of_pack: bool) -> str:
        if of_pack:
            length = self._pack_length(operand)
            return f"sizeof...({self.text(operand)})" if length is None else str(length)
        return f"sizeof ({self.text(operand)})"


def _last_arguments(name: Node) -> tuple[Node, ...] | None:
    """The arguments that template parameters in a function's types refer to."""
    while name[0] in ("scoped", "tagged"):
        name = name[2] if name[0] == "scoped" else name[1]
    if name[0] != "template":
        return None
    arguments: tuple[Node, ...] = name[2]
    return arguments
