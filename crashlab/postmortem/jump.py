"""A PC outside all code: a call or branch through a corrupt pointer, and where it came from."""

from __future__ import annotations

from crashlab import facts
from crashlab.gpucore.dump import CoreDump
from crashlab.postmortem.attribute import Attribution
from crashlab.postmortem.codemap import CodeMap
from crashlab.postmortem.disassembly import Disassembly
from crashlab.postmortem.evidence import faulting_lanes
from crashlab.postmortem.wording import file_line, short_name

_CALLS = ("CALL", "BRX", "JMX", "BRXU", "JMXU", "RET")
_INSTRUCTION = 16


def jump_outside_code(
    dump: CoreDump, codemap: CodeMap, attribution: Attribution, disassembly: Disassembly
) -> facts.Address | None:
    """The jump as an address fact; None when the PC lies in a module after all."""
    pc = attribution.fault.pc
    if pc is None or attribution.code is not None or not dump.modules:
        return None
    text = f"the warp jumped to {pc}, which lies in no module of the dump: a corrupt function pointer or return address"
    caller = _caller(dump, codemap, attribution, disassembly)
    if caller:
        text += f"; it came from {caller}"
    return facts.Address("recovered", facts.Hex(pc), space="code", finding=text, kind="corrupt-code-pointer")


def _caller(
    dump: CoreDump, codemap: CodeMap, attribution: Attribution, disassembly: Disassembly
) -> str | None:
    """The call whose return address the thread's stack holds, when the instruction before it is one."""
    report = attribution.group.reports[0]
    if report.warp is None:
        return None
    for lane in faulting_lanes(dump, report.warp)[:1]:
        for level in dump.backtrace(lane) or ():
            back = level.virtual_return_address or level.return_address
            entry = report.grid.function_entry if report.grid else None
            # Seen in a dump of driver 580: where the stack could not be resolved, the offset from the
            # kernel's entry stands in place of the address.
            for candidate in (back, (entry or 0) + back if entry else 0):
                hit = codemap.at(candidate - _INSTRUCTION, report.grid) if candidate > _INSTRUCTION else None
                if hit is None or hit.function is None:
                    continue
                line = file_line(hit.source)
                where = f"{short_name(hit.function.name)}+{hex(hit.function.offset or 0)}"
                lines = disassembly.lines(hit) or ()
                made = next((x.text for x in lines if x.pc == hit.pc), None)
                if made is not None and not made.split(" ")[-2 if made.startswith("@") else 0].startswith(
                    _CALLS
                ):
                    continue
                return where + (f" ({line})" if line else "") + (f": {made}" if made else "")
    return None
