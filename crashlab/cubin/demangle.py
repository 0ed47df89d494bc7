"""Readable names of functions.

Not through ``__cxa_demangle`` of the system's C++ runtime: it has no bound on its output (a name of 256
characters made 109 MB in 2 s, and each pair of letters more doubles that), loading it costs as much as
the rest of a short analysis (ctypes and the library: 5 to 15 ms), and it is not everywhere. The test
suite holds this one against it, name by name.
"""

from __future__ import annotations

from crashlab.cubin.itanium_parse import Parser
from crashlab.cubin.itanium_reader import NotDemangledError
from crashlab.cubin.itanium_text import Printer

_MAX_MANGLED = 1 << 14
"""Longest name that is tried; CUTLASS reaches some 5,000 characters."""


def demangle(mangled: str) -> str:
    """The readable form of a symbol name, parameters included; the name itself when it has none.

    ``$KERNEL$FUNCTION``, a function that ptxas placed inside its kernel, gives FUNCTION alone, as does
    ``$__internal_3_$FUNCTION``; ``.text.NAME`` and nvcc's ``__nv_static_N_TAG_NAME`` give NAME. A
    duplicate's number stays visible: ``_Z1fv$3`` is ``f() [clone $3]``. Names of Triton, cuDNN and
    ``extern "C"`` stay as they are.
    """
    name = _inner(mangled)
    if not name.startswith("_Z") or len(name) > _MAX_MANGLED or not name.isascii():
        return name
    plain, mark, number = name.partition("$")
    try:
        text = Printer().text(Parser(plain).parse())
    except NotDemangledError:
        return name
    return f"{text} [clone ${number}]" if mark else text


def _inner(symbol: str) -> str:
    """The function's own name in a symbol that says more."""
    name = symbol.removeprefix(".text.")
    if name.startswith("$"):
        _, _, inner = name[1:].partition("$")
        name = inner or name
    if name.startswith("__nv_static_"):  # a static kernel: LENGTH _ TAG OF THAT LENGTH _ NAME
        length, _, rest = name.removeprefix("__nv_static_").partition("_")
        if length.isdecimal() and len(length) < 5 and rest[int(length) : int(length) + 3] == "__Z":
            name = rest[int(length) + 1 :]
    return name or symbol
