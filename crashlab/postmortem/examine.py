"""One dump, read natively from bytes to verdict: the order in which the other modules are asked."""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

from collections.abc import Sequence
from typing import NamedTuple

from crashlab import facts
from crashlab.cubin.demangle import demangle
from crashlab.gpucore.dump import CoreDump
from crashlab.postmortem import confidence, wording
from crashlab.postmortem.attribute import Attribution, attribute, module_of, slot_was_reused
from crashlab.postmortem.codemap import CodeMap
from crashlab.postmortem.disassembly import Disassembly, is_unknown
from crashlab.postmortem.evidence import ASSERT, FaultGroup, collect
from crashlab.postmortem.fromfault import verdict_of
from crashlab.postmortem.instruction import AFTER, BEFORE, instruction_at
from crashlab.postmortem.whose import library_of
from crashlab.sass.line import SassLine

_GROUP_LIMIT = 32
"""Distinct faults described in full; a dump with more of them is told so in ``provenance``."""


class Examination(NamedTuple):
    """All that the native reader found in one dump."""

    verdict: facts.Verdict
    faults: tuple[facts.Fault, ...] = ()
    inconsistencies: tuple[facts.Inconsistency, ...] = ()
    bystanders: tuple[facts.Bystander, ...] = ()
    provenance: tuple[str, ...] = ()


def examine(dump: CoreDump, disassembly: Disassembly, *, addresses: bool = True) -> Examination:
    """Read a dump and say what failed, or where the GPU stood when nothing did.

    Without ``addresses`` the faulting address is not rebuilt: that needs all instructions between the
    fault and each lane, which costs more than all the rest.
    """
    codemap = CodeMap(dump)
    groups = collect(dump)
    if not groups:
        return _without_exception(dump, codemap, disassembly)
    lead = attribute(dump, codemap, groups[0])
    disassembly.prefetch(lead.code)
    others = [attribute(dump, codemap, group) for group in groups[1:_GROUP_LIMIT]]
    return _fault(dump, codemap, disassembly, [lead, *others], groups, addresses)


def _fault(
    dump: CoreDump,
    codemap: CodeMap,
    disassembly: Disassembly,
    attributions: list[Attribution],
    groups: tuple[FaultGroup, ...],
    addresses: bool,
) -> Examination:
    lead = attributions[0]
    fault = lead.fault
    kind = _kind(lead)
    lines = disassembly.lines(lead.code) if addresses else disassembly.around(lead.code, BEFORE, AFTER)
    # The PC of an assert or trap is where the thread stopped, not an instruction that failed.
    instruction, address = None, None
    if kind == "gpu-fault":
        instruction, address = _access(dump, codemap, disassembly, lead, lines, addresses)
    verdict = verdict_of(kind, fault)._replace(
        instruction=instruction,
        library=library_of(fault, lead.code),
        where=_with_threads(fault.where, address),
        address=address,
    )
    reused = slot_was_reused(lead)
    verdict = verdict._replace(
        headline=wording.fault_headline(verdict),
        confidence=confidence.of_fault(kind, lead, dump.problems),
        does_not_mean=wording.fault_caveats(
            verdict, exited=lead.group.exited, reused=reused, groups=len(groups)
        ),
    )
    faults = tuple(a.fault for a in attributions)
    if instruction is not None:
        faults = (faults[0]._replace(instruction=instruction._replace(window=())), *faults[1:])
    return Examination(
        verdict,
        faults,
        (*(i for a in attributions for i in a.inconsistencies), *_readings(disassembly)),
        (
            *(b for a in attributions for b in a.bystanders),
            *_resident_bystanders(dump, codemap, attributions),
        ),
        (*(p for p in lead.provenance), *_too_many(groups), *dump.problems, *_unread(disassembly)),
    )


def _access(
    dump: CoreDump,
    codemap: CodeMap,
    disassembly: Disassembly,
    lead: Attribution,
    lines: Sequence[SassLine] | None,
    addresses: bool,
) -> tuple[facts.Instruction | None, facts.Address | None]:
    """The faulting instruction and the address it used. What this needs is imported only when it can work."""
    pc = lead.fault.pc
    if pc is None:
        return None, facts.Address("not-recoverable", why="no PC of the fault was recorded")
    if lead.code is None:
        from crashlab.postmortem.jump import jump_outside_code

        jump = jump_outside_code(dump, codemap, lead, disassembly)
        return None, jump or facts.Address("not-recoverable", why="the PC lies in no module of the dump")
    if not lines:
        return None, facts.Address("not-recoverable", why="the instruction was not disassembled")
    raw = next((line.text for line in lines if line.pc == pc), "")
    if is_unknown(raw):
        why = f"crashlab's own tables do not know this instruction ({raw}); {disassembly.next_step()}"
        return None, facts.Address("not-recoverable", why=why)
    instruction = instruction_at(lines, pc, lead.code, decoded_by=disassembly.used, operands=addresses)
    if not addresses:
        return instruction, None
    from crashlab.postmortem.address import rebuild

    rebuilt = rebuild(dump, codemap, lead, lines, instruction)
    return rebuilt.annotate(instruction), rebuilt.fact


def _kind(lead: Attribution) -> str:
    code = lead.group.code
    if code == ASSERT:
        return "device-assert"
    if code is None and lead.group.pc_source == "lane-pc":
        return "trap"
    return "gpu-fault"


def _with_threads(where: facts.Where | None, address: facts.Address | None) -> facts.Where | None:
    """The place with the threads whose own address was bad, where that could be judged."""
    if where is None or address is None:
        return where
    bad = tuple(lane.thread for lane in address.per_lane if lane.bad and lane.thread is not None)
    return where._replace(threads=tuple(dict.fromkeys(bad))) if bad else where


def _resident_bystanders(
    dump: CoreDump, codemap: CodeMap, attributions: list[Attribution]
) -> list[facts.Bystander]:
    """Kernels that were resident and report no fault of their own."""
    accused = {a.fault.kernel.mangled for a in attributions if a.fault.kernel}
    named = {b.kernel for a in attributions for b in a.bystanders}
    out: dict[str, facts.Bystander] = {}
    for grid in dump.grids:
        mangled = codemap.kernel_of(grid)
        if mangled is None or mangled in accused:
            continue
        name = demangle(mangled)
        if name not in named:
            out.setdefault(
                name, facts.Bystander(name, "It was resident and none of its warps reports an exception.")
            )
    return list(out.values())


def _too_many(groups: tuple[FaultGroup, ...]) -> tuple[str, ...]:
    if len(groups) <= _GROUP_LIMIT:
        return ()
    return (f"{len(groups)} distinct faults were recorded; the first {_GROUP_LIMIT} are described.",)


def _readings(disassembly: Disassembly) -> tuple[facts.Inconsistency, ...]:
    """Where our decoder and nvdisasm, asked both, read an instruction differently."""
    return tuple(
        facts.Inconsistency(
            what=f"The instruction at {hex(pc)} reads differently.",
            sources={"native": ours, "nvdisasm": theirs},
            resolution="nvdisasm's reading is shown; please report the difference, it is a bug in crashlab's tables.",
        )
        for pc, ours, theirs in disassembly.differences[:20]
    )


def _unread(disassembly: Disassembly) -> tuple[str, ...]:
    return (
        (f"No instructions: {disassembly.missing}.",) if disassembly.missing and not disassembly.used else ()
    )


def _without_exception(dump: CoreDump, codemap: CodeMap, disassembly: Disassembly) -> Examination:
    from crashlab.postmortem.hang import read_hang

    reading = read_hang(dump, codemap, disassembly.lines)
    if not reading.hang.groups:
        what = "No GPU exception, and no kernel was resident: the GPU was idle when the dump was taken"
        if dump.grids:
            what = "No GPU exception, and no warp was resident although kernels were in flight"
        verdict = facts.Verdict(
            "no-fault", what, confidence=confidence.IDLE, does_not_mean=wording.HANG_CAVEATS[:0]
        )
        return Examination(verdict, provenance=dump.problems)
    lead = reading.hang.groups[0]
    lead = next((g for g in reading.hang.groups if g.pc == reading.pc), lead)
    source = reading.code.source if reading.code else None
    where = wording.file_line(source) or (lead.instruction if lead.instruction else None)
    function = reading.code.function if reading.code else None
    lines = disassembly.lines(reading.code)
    pc = facts.Hex(reading.pc) if reading.pc is not None else None
    verdict = facts.Verdict(
        kind="hang",
        headline=wording.hang_headline(
            reading.kernel.name if reading.kernel else None, reading.own_groups(), where
        ),
        kernel=reading.kernel,
        function=function,
        pc=pc,
        pc_source="lane-pc",
        instruction=instruction_at(lines, pc, reading.code, decoded_by=disassembly.used)
        if pc is not None
        else None,
        source=source,
        module=None,
        where=reading.where,
        confidence=confidence.HANG,
        does_not_mean=wording.HANG_CAVEATS,
        hang=reading.hang,
    )
    fault = facts.Fault(
        None, pc, "lane-pc", reading.kernel, function, source, module_of(reading.code), reading.where
    )
    verdict = verdict._replace(module=fault.module, library=library_of(fault, reading.code))
    return Examination(verdict, provenance=(*dump.problems, *_unread(disassembly)))
