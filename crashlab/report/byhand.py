"""The commands with which a person checks each claim without crashlab."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from crashlab import facts


def with_commands(report: facts.Report, cores: Sequence[str]) -> facts.Report:
    """The report with ``commands`` for its first dump: the verdict's PC in cuda-gdb, the code in nvdisasm."""
    if not cores:
        return report
    core = shlex.quote(cores[0])
    verdict = report.verdict
    gdb = f"cuda-gdb -nx -batch -ex 'target cudacore {_in_gdb(cores[0])}'"
    out = [f"{gdb} -ex 'info cuda kernels' -ex 'print $errorpc' -ex 'x/6i $errorpc' -ex 'info cuda lanes'"]
    if verdict.pc is not None:
        out.append(
            f"{gdb} -ex 'info symbol {verdict.pc}' -ex 'info line *{verdict.pc}' -ex 'x/6i {verdict.pc}'"
        )
    if verdict.function is not None and verdict.function.mangled and verdict.module is not None:
        out.append(f"crashlab inspect {core} cubin --module {verdict.module.index} -o module.cubin")
        name = shlex.quote(f".text.{verdict.function.mangled}") if verdict.kernel is None else None
        kernel = verdict.kernel.mangled if verdict.kernel and verdict.kernel.mangled else None
        section = name or shlex.quote(f".text.{kernel}")
        out.append(f"nvdisasm -c module.cubin | grep -n -A40 -F {section}")
    out.append(f"crashlab inspect {core} registers --faulting")
    return report._replace(commands=tuple(out))


def _in_gdb(path: str) -> str:
    """A path inside a single-quoted gdb command."""
    return path.replace("'", "'\\''")
