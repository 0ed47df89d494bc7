"""Whether two tools name the same function: mangled or not, with or without arguments and launch."""

from __future__ import annotations

from crashlab.postmortem.kernelname import parse


def same_function(one: str | None, other: str | None) -> bool | None:
    """None when either name is missing.

    A backtrace leaves out return type and parameters (``f<128>``), a symbol has them, and cuda-gdb
    prints a double underscore before a digit as a dot (``kernel.5x_cublas``): none of these is a
    difference.
    """
    if not one or not other:
        return None
    if one == other:
        return True
    a, b = parse(_undotted(one)), parse(_undotted(other))
    if a.head != b.head:
        return False
    shorter, longer = sorted((a.words, b.words), key=len)
    return longer == shorter or longer.startswith(shorter + " ")


def _undotted(name: str) -> str:
    """``kernel.5x_cublas`` → ``kernel__5x_cublas``; ``f.part.0`` has a compiler's suffix and stays."""
    out, *rest = name.split(".")
    for part in rest:
        out += f"__{part}" if part[:1].isdigit() and not part.isdigit() else f".{part}"
    return out
