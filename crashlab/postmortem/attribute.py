"""Who faulted: from the hardware's records to kernel, function, place and confidence."""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

from typing import NamedTuple

from crashlab import facts
from crashlab.cubin.demangle import demangle
from crashlab.errors import MalformedCubin
from crashlab.gpucore import exceptions
from crashlab.gpucore.dump import CoreDump
from crashlab.gpucore.rows import GridRow, WarpRow
from crashlab.postmortem.codemap import CodeHit, CodeMap
from crashlab.postmortem.evidence import ASSERT, FaultGroup, WarpEvidence, faulting_lanes

ASSERT_MACHINERY = ("__assertfail", "__assert_fail", "__cuda_syscall", "__internal_trap", "vprintf", "__trap")
"""Functions that stand between a failed ``assert`` and the stop on drivers that do not unwind them."""


class Attribution(NamedTuple):
    """One fault with all that could be said of it."""

    fault: facts.Fault
    code: CodeHit | None
    group: FaultGroup
    inconsistencies: tuple[facts.Inconsistency, ...] = ()
    bystanders: tuple[facts.Bystander, ...] = ()
    provenance: tuple[str, ...] = ()


def attribute(dump: CoreDump, codemap: CodeMap, group: FaultGroup) -> Attribution:
    """Name the kernel, function, source and place of one group of fault reports."""
    first = group.reports[0]
    pc, pc_source = _fault_pc(dump, codemap, group)
    code = codemap.at(pc, first.grid)
    kernel, inconsistencies, bystanders, provenance = _kernel(codemap, code, first, pc)
    fault = facts.Fault(
        exception=_exception(group),
        pc=facts.Hex(pc) if pc is not None else None,
        pc_source=pc_source if pc is not None else None,
        kernel=kernel,
        function=code.function if code else None,
        source=code.source if code else None,
        module=module_of(code),
        where=_where(dump, group, first, reused=bool(inconsistencies)),
        reports=len(group.reports),
    )
    return Attribution(fault, code, group, inconsistencies, bystanders, provenance)


def _exception(group: FaultGroup) -> facts.GpuException | None:
    if group.code is None:
        return None
    precision = exceptions.precision(group.code, lanes=group.lanes, has_warp=not group.exited)
    return facts.GpuException(group.code, exceptions.title(group.code), precision, group.driver_text)


def _fault_pc(dump: CoreDump, codemap: CodeMap, group: FaultGroup) -> tuple[int | None, str]:
    """The faulting PC; of an assert or trap, the innermost one outside the assert machinery."""
    first = group.reports[0]
    if group.pc_source != "lane-pc" or first.warp is None:
        return group.pc, group.pc_source
    if group.code not in (None, ASSERT):
        # A lane's PC has run past the fault: without an errorPC the instruction is not known.
        return None, group.pc_source
    if not _is_machinery(codemap, group.pc, first.grid):
        return group.pc, "lane-pc"
    for lane in faulting_lanes(dump, first.warp)[:1]:
        for level in dump.backtrace(lane) or ():
            caller = level.virtual_return_address
            if caller and not _is_machinery(codemap, caller, first.grid):
                return caller, "backtrace"
    return group.pc, "lane-pc"


def _is_machinery(codemap: CodeMap, pc: int | None, grid: GridRow | None) -> bool:
    hit = codemap.at(pc, grid)
    if hit is None:
        return True  # system code of the driver lies in no image of the dump
    return hit.symbol is not None and hit.symbol.function.mangled.lstrip("$").startswith(ASSERT_MACHINERY)


def launch_of(grid: GridRow | None, warp: WarpRow | None) -> facts.Launch | None:
    """The launch configuration a grid row (and a warp's shared memory size) gives."""
    if grid is None:
        return None
    cluster = grid.cluster_dim
    if cluster is not None and not (cluster.x and cluster.y and cluster.z):
        cluster = None  # 0 in every extent: launched without clusters
    return facts.Launch(
        grid=grid.grid_dim,
        block=grid.block_dim,
        cluster=cluster,
        shared_bytes=warp.shared_mem_size if warp else None,
        registers=grid.num_regs,
        grid_id=grid.grid_id,
    )


def kernel_fact(mangled: str | None, launch: facts.Launch | None, source: str | None) -> facts.Kernel:
    """A kernel with its demangled name."""
    return facts.Kernel(demangle(mangled) if mangled else None, mangled, launch, source)


def _kernel(
    codemap: CodeMap, code: CodeHit | None, first: WarpEvidence, pc: int | None
) -> tuple[
    facts.Kernel | None, tuple[facts.Inconsistency, ...], tuple[facts.Bystander, ...], tuple[str, ...]
]:
    """The kernel by the PC where the PC can tell, else by the warp's grid."""
    by_grid = codemap.kernel_of(first.grid)
    by_pc = code.kernel_name if code else None
    launch = launch_of(first.grid, first.warp)
    if by_pc and by_grid and by_pc != by_grid:
        return (kernel_fact(by_pc, None, None), *_slot_reused(by_pc, by_grid, first, pc))
    if by_pc:
        if launch is not None:
            return kernel_fact(by_pc, launch, "grid"), (), (), ()
        inferred = _only_launch(codemap, by_pc, first)
        if inferred is None:
            return kernel_fact(by_pc, None, None), (), (), ()
        note = (
            "The launch configuration is that of the only resident grid of this kernel; the faulting warp had "
            "exited."
        )
        return kernel_fact(by_pc, inferred, "inferred"), (), (), (note,)
    if by_grid is None:
        return None, (), (), ()
    if code is None:
        note = "The kernel is that of the warp's grid: the PC itself lies in no module of the dump."
        return kernel_fact(by_grid, launch, "inferred"), (), (), (note,)
    note = "The kernel is that of the warp's grid: the PC lies in a device function with code of its own."
    return kernel_fact(by_grid, launch, "grid"), (), (), (note,)


def _only_launch(codemap: CodeMap, mangled: str, first: WarpEvidence) -> facts.Launch | None:
    grids = [
        grid
        for grid in codemap.dump.grids
        if codemap.dump.device_of(grid) == first.device and codemap.kernel_of(grid) == mangled
    ]
    return launch_of(grids[0], None) if len(grids) == 1 else None


def _slot_reused(
    by_pc: str, by_grid: str, first: WarpEvidence, pc: int | None
) -> tuple[tuple[facts.Inconsistency, ...], tuple[facts.Bystander, ...], tuple[str, ...]]:
    culprit, innocent = demangle(by_pc), demangle(by_grid)
    where = f"warp {first.warp.warp_id}" if first.warp else "the warp"
    mismatch = facts.Inconsistency(
        what=f"The error PC lies in {culprit}, but the grid of {where} runs {innocent}.",
        sources={
            "native": f"error PC {hex(pc or 0)} in {culprit}; grid {first.grid.grid_id if first.grid else '?'} "
            f"runs {innocent}"
        },
        resolution=(
            f"The faulting warp of {culprit} had exited and its slot already runs {innocent}. "
            "The hardware recorded the PC at the fault, so the PC names the culprit; registers, threads "
            "and launch configuration of the slot belong to the later kernel and were not used."
        ),
    )
    bystander = facts.Bystander(
        innocent,
        "It only reuses the slot of the warp that faulted; the recorded error PC is not in its code.",
    )
    return (mismatch,), (bystander,), ()


def slot_was_reused(attribution: Attribution) -> bool:
    """True when the warp's registers belong to a later kernel than the one that faulted."""
    return any("reuses the slot" in b.why for b in attribution.bystanders)


def module_of(code: CodeHit | None) -> facts.Module | None:
    """The module that holds a PC, without its hash (which costs a pass over the image)."""
    if code is None:
        return None
    try:
        arch, compiler = code.cubin.arch, code.cubin.compiler
    except MalformedCubin:
        arch = compiler = None
    view = code.cubin.elf.view
    return facts.Module(code.module.row, None, len(view), arch, compiler)


def _where(dump: CoreDump, group: FaultGroup, first: WarpEvidence, *, reused: bool) -> facts.Where:
    """The place; block and warp of a slot that was reused are those of the later kernel, and left out."""
    device = first.device
    number = dump.device_index(device)
    threads: tuple[facts.Dim3, ...] = ()
    if first.warp is not None and group.code in (None, ASSERT):
        lanes = faulting_lanes(dump, first.warp)
        threads = tuple(t for t in (lane.thread for lane in lanes) if t is not None)
    return facts.Where(
        device=number,
        device_name=dump.string(device.dev_name) if device else None,
        sm_arch=device.arch if device else None,
        sms=tuple(sm for dev, sm in group.sms if dev == number),
        block=first.cta.block if first.cta and not reused else None,
        warp=first.warp.warp_id if first.warp and not reused else None,
        threads=threads,
    )
