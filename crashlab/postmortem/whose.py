"""From the evidence of a dump to the library rules: whose kernel it is."""

from __future__ import annotations

import contextlib
from itertools import islice

from crashlab import facts
from crashlab.errors import MalformedCubin
from crashlab.postmortem.codemap import CodeHit
from crashlab.postmortem.library import ModuleHints, attribute

_SIBLINGS = 20
_FEW = 20_000
"""Counting and listing kernels passes over the symbol table: not for the very large ones."""
_TELLING = (".debug_line", ".nv_debug_ptx_txt", ".note.nv.tkinfo")


def library_of(fault: facts.Fault, code: CodeHit | None) -> facts.Library | None:
    """The library of the fault's kernel (of its function when no kernel is known)."""
    named = fault.kernel or fault.function
    if named is None or named.mangled is None:
        return None
    return attribute(named.mangled, named.name, _hints(fault, code))


def _hints(fault: facts.Fault, code: CodeHit | None) -> ModuleHints | None:
    if code is None:
        return None
    kernels: int | None = None
    siblings: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    lines: bool | None = None
    with contextlib.suppress(MalformedCubin):
        if code.cubin.symbols.count < _FEW:
            kernels = code.cubin.symbols.kernel_count()
            siblings = tuple(k.mangled for k in islice(code.cubin.kernels(), _SIBLINGS))
        sections = tuple(name for name in _TELLING if code.cubin.elf.find(name) is not None)
        lines = ".debug_line" in sections
    module = fault.module
    return ModuleHints(
        compiler=module.compiler if module else None,
        kernels=kernels,
        line_info=lines,
        source_file=fault.source.file if fault.source else None,
        sections=sections,
        arch=module.arch if module else None,
        siblings=siblings,
    )
