"""The commands with which a person checks each claim without crashlab."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from crashlab import facts
from crashlab.debugger.commands import by_hand


def with_commands(report: facts.Report, cores: Sequence[str]) -> facts.Report:
    """The report with ``commands`` for its first dump: the PC in cuda-gdb, the code in nvdisasm, the registers."""
    if not cores:
        return report
    verdict, core = report.verdict, shlex.quote(cores[0])
    out = [*by_hand(cores[0], verdict.pc)]
    if verdict.module is not None and verdict.module.index is not None:
        out.append(f"crashlab inspect {core} cubin --module {verdict.module.index} -o module.cubin")
        out.append("nvdisasm -c module.cubin")
    out.append(f"crashlab inspect {core} registers --faulting")
    return report._replace(commands=tuple(out))
