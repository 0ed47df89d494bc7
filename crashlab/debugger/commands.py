"""The commands crashlab gives to cuda-gdb, and the ones a person can type to check a claim.

A command that a version lacks prints one line and does no harm: gdb goes on to the next ``-ex`` after
an error (seen with 12.4 and 13.0). Each group is preceded by a marker line ``==name``, so that an
answer can be told from another's, and the last marker proves that the debugger came to the end.
"""

from __future__ import annotations

import shlex

CORE = "core"
"""Name of the dump in the private folder: whatever its real path holds, gdb never has to parse it."""

END = "end"

_SETTINGS = (
    "set auto-load no",
    "set debuginfod enabled off",
    "set history save off",
    "set confirm off",
    "set pagination off",
    "set width 0",
    "set height 0",
    "set style enabled off",
    "set print asm-demangle off",
    # The dump names source files; gdb would open them and print a line of whatever they are.
    "set print frame-info location",
    "set substitute-path / /nonexistent/",
    "set backtrace limit 256",
    "set print elements 200",
    # An internal error otherwise asks questions and writes a core file of the debugger itself.
    "maintenance set internal-error quit yes",
    "maintenance set internal-error corefile no",
)

_GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("focus", ("cuda kernel grid block thread device sm warp lane",)),
    ("errorpc", ("info registers errorpc", "info symbol $errorpc", "info line *$errorpc")),
    # Starting before the instruction fails where that is not mapped, hence the second command.
    ("window", ("x/14i $errorpc-96", "x/4i $errorpc")),
    ("pc", ("info registers pc", "info symbol $pc", "info line *$pc", "x/8i $pc-32", "x/4i $pc")),
    ("kernels", ("info cuda kernels",)),
    ("devices", ("info cuda devices",)),
    ("contexts", ("info cuda contexts",)),
    ("frames", ("backtrace 64",)),
    ("warps", ("info cuda warps",)),
    ("lanes", ("info cuda lanes",)),
    ("blocks", ("info cuda blocks",)),
    ("barriers", ("info cuda barriers",)),
    ("registers", ("info registers",)),
    ("system", ("info registers system",)),
)


def arguments() -> tuple[str, ...]:
    """cuda-gdb's arguments, without the program: batch mode, no start-up files, settings, commands."""
    out = ["-nx", "-batch"]
    for setting in _SETTINGS:
        out += ("-iex", setting)
    out += ("-ex", _marker("open"), "-ex", f"target cudacore {CORE}")
    for name, group in _GROUPS:
        out += ("-ex", _marker(name))
        for command in group:
            out += ("-ex", command)
    out += ("-ex", _marker(END))
    return tuple(out)


def _marker(name: str) -> str:
    return f"echo =={name}\\n"


def by_hand(dump: str, pc: int | None = None, *, program: str = "cuda-gdb") -> tuple[str, ...]:
    """Shell lines that check a verdict by hand; ``pc`` is the faulting instruction when one is known.

    gdb takes the rest of a command line as the path, so a dump whose name holds blanks or a leading
    dash needs no more than the shell's quotes; one with a line break cannot be opened this way.
    """
    steps = [f"target cudacore {dump}", "info cuda kernels", "info cuda lanes", "backtrace"]
    if pc is not None:
        steps += [f"info symbol {pc:#x}", f"info line *{pc:#x}", f"x/8i {pc:#x}"]
    words = [program, "-nx", "-batch"]
    for step in steps:
        words += ("-ex", step)
    return (shlex.join(words),)
