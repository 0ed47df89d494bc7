"""Finding the brackets that belong together in C++ names."""

from __future__ import annotations


def last_group(text: str) -> int | None:
    """Index of the ``(`` that the final ``)`` closes; None when the text does not end in a whole group."""
    if not text.endswith(")"):
        return None
    depth = 0
    for i in range(len(text) - 1, -1, -1):
        if text[i] == ")":
            depth += 1
        elif text[i] == "(":
            depth -= 1
            if depth == 0:
                return i
    return None


def open_brackets(text: str) -> int:
    """How many round brackets and braces are still open. Angle brackets are operators too: not counted."""
    return text.count("(") + text.count("{") - text.count(")") - text.count("}")
