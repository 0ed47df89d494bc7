"""A dump without an exception: where every resident warp stood, and who may be waiting for whom."""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

from collections.abc import Callable, Sequence
from typing import NamedTuple

from crashlab import facts
from crashlab.cubin.demangle import demangle
from crashlab.gpucore.dump import CoreDump
from crashlab.gpucore.rows import CtaRow, GridRow, LaneRow, WarpRow
from crashlab.postmortem.attribute import kernel_fact, launch_of
from crashlab.postmortem.codemap import CodeHit, CodeMap
from crashlab.postmortem.evidence import active_lanes
from crashlab.postmortem.wait import WaitState, wait_state
from crashlab.postmortem.words import counted
from crashlab.sass.line import SassLine

LinesOf = Callable[[CodeHit], Sequence[SassLine] | None]
_GROUP_LIMIT = 64


class WarpAt(NamedTuple):
    """A resident warp and the PC its active lanes stand at; ``diverged`` are PCs of its other lanes."""

    warp: WarpRow
    cta: CtaRow | None
    grid: GridRow | None
    sm: int | None
    pc: int
    lane: LaneRow
    diverged: tuple[int, ...]


class HangReading(NamedTuple):
    """The hang report and what the verdict takes from it."""

    hang: facts.Hang
    kernel: facts.Kernel | None
    code: CodeHit | None
    pc: int | None
    warps: int
    state: str | None
    where: facts.Where | None

    def own_groups(self) -> tuple[facts.HangGroup, ...]:
        """The groups of the kernel that the verdict names."""
        name = self.kernel.name if self.kernel else None
        return tuple(group for group in self.hang.groups if group.kernel == name)


def resident_warps(dump: CoreDump) -> list[WarpAt]:
    """Every resident warp with the PC of its first active lane (of its first lane when none is active)."""
    out = []
    for warp in dump.warps:
        lanes = dump.lanes(warp)
        if not lanes:
            continue
        lane = (active_lanes(warp, lanes) or lanes)[0]
        cta = dump.cta_of(warp)
        sm = dump.sm_of(cta) if cta else None
        others = tuple(sorted({other.virtual_pc for other in lanes} - {lane.virtual_pc}))
        out.append(
            WarpAt(
                warp,
                cta,
                dump.grid_of(cta) if cta else None,
                sm.sm_id if sm else None,
                lane.virtual_pc,
                lane,
                others,
            )
        )
    return out


def read_hang(dump: CoreDump, codemap: CodeMap, lines_of: LinesOf) -> HangReading:
    """Group the resident warps by kernel and PC, the most warps first, and say what each group does."""
    grouped: dict[tuple[int, int], list[WarpAt]] = {}
    for at in resident_warps(dump):
        grid = (at.grid.section << 24 | at.grid.row) if at.grid else -1
        grouped.setdefault((grid, at.pc), []).append(at)
    ordered = sorted(grouped.values(), key=len, reverse=True)[:_GROUP_LIMIT]
    groups, states = [], []
    for members in ordered:
        group, state = _describe(dump, codemap, members, lines_of)
        groups.append(group)
        states.append(state)
    waits = (*_waits(groups), *_residency(dump, ordered))
    launched, resident = _blocks(dump)
    hang = facts.Hang(tuple(groups), waits, resident, launched)
    if not ordered:
        return HangReading(hang, None, None, None, 0, None, None)
    return _reading(dump, codemap, hang, ordered, groups)


def _reading(
    dump: CoreDump,
    codemap: CodeMap,
    hang: facts.Hang,
    ordered: list[list[WarpAt]],
    groups: list[facts.HangGroup],
) -> HangReading:
    """The verdict names the grid with most warps, in it a spinning group before a waiting one."""
    totals: dict[GridRow | None, int] = {}
    for members in ordered:
        totals[members[0].grid] = totals.get(members[0].grid, 0) + len(members)
    grid = max(totals, key=lambda g: totals[g])
    own = [i for i, members in enumerate(ordered) if members[0].grid == grid]
    lead = next((i for i in own if groups[i].state == "spinning"), own[0])
    first = ordered[lead][0]
    code = codemap.at(first.pc, first.grid)
    mangled = codemap.kernel_of(grid) or (code.kernel_name if code else None)
    kernel = kernel_fact(mangled, launch_of(grid, first.warp), "grid") if mangled or grid else None
    sm_row = dump.sm_of(first.cta) if first.cta else None
    device = dump.device_of(sm_row) if sm_row else None
    where = facts.Where(
        device=dump.device_index(device),
        device_name=dump.string(device.dev_name) if device else None,
        sm_arch=device.arch if device else None,
        sms=tuple(sorted({m.sm for i in own for m in ordered[i] if m.sm is not None})),
        block=first.cta.block if first.cta else None,
        warp=first.warp.warp_id,
    )
    return HangReading(hang, kernel, code, first.pc, totals[grid], groups[lead].state, where)


def _describe(
    dump: CoreDump, codemap: CodeMap, members: list[WarpAt], lines_of: LinesOf
) -> tuple[facts.HangGroup, WaitState]:
    first = members[0]
    code = codemap.at(first.pc, first.grid)
    lines = (lines_of(code) if code else None) or ()
    state = wait_state(dump, first.warp, first.lane, lines, first.pc)
    mangled = codemap.kernel_of(first.grid)
    details = [state.detail + _arrived(members, state.barrier)] if state.detail else []
    diverged = sorted({pc for m in members for pc in m.diverged})
    if diverged:
        details.append(f"other lanes of these warps stand at {', '.join(hex(pc) for pc in diverged[:4])}")
    group = facts.HangGroup(
        kernel=demangle(mangled) if mangled else None,
        function=code.function.name if code and code.function else None,
        pc=facts.Hex(first.pc),
        warps=len(members),
        blocks=len({(m.cta.section, m.cta.row) for m in members if m.cta}),
        sms=tuple(sorted({m.sm for m in members if m.sm is not None})),
        instruction=next((line.text for line in lines if line.pc == first.pc), None),
        source=code.source if code else None,
        state=state.state,
        detail="; ".join(details) or None,
    )
    return group, state


def _arrived(members: list[WarpAt], barrier: tuple[int, int] | None) -> str:
    """How many threads of the first warp's block stand at a barrier that waits for a number of them."""
    first = members[0]
    extent = first.grid.block_dim if first.grid else None
    if barrier is None or extent is None or first.cta is None:
        return ""
    number, needed = barrier
    here = sum((m.warp.valid_lanes or 0).bit_count() for m in members if m.cta == first.cta)
    size = extent.x * extent.y * extent.z
    text = f": barrier {number} waits for {counted(needed, 'thread')}, of which {here:,} of this block stand here"
    return f"{text}; the block has only {size:,}" if needed > size else text


def _waits(groups: list[facts.HangGroup]) -> list[str]:
    """Who waits for whom, as far as barriers of one kernel tell."""
    out = []
    for group in groups:
        others = [g for g in groups if g.kernel == group.kernel and g.pc != group.pc and g.state != "barrier"]
        if group.state == "barrier" and others:
            what = ", ".join(f"{g.warps} at {g.pc} ({g.state or 'running'})" for g in others[:4])
            out.append(
                f"{counted(group.warps, 'warp')} of {group.kernel or 'a kernel'} "
                f"{'stands' if group.warps == 1 else 'stand'} at a barrier while other warps of it do not: {what}. "
                "A block leaves its barrier only when all its warps arrive."
            )
    return out


def _blocks(dump: CoreDump) -> tuple[int | None, int]:
    launched = 0
    for grid in dump.grids:
        if grid.grid_dim is None:
            return None, len(dump.ctas)
        launched += grid.grid_dim.x * grid.grid_dim.y * grid.grid_dim.z
    return (launched if dump.grids else None), len(dump.ctas)


def _residency(dump: CoreDump, ordered: list[list[WarpAt]]) -> list[str]:
    """Grids larger than what is resident: a kernel that waits for a block not yet started never ends."""
    out = []
    for grid in dump.grids:
        extent = grid.grid_dim
        if extent is None:
            continue
        launched = extent.x * extent.y * extent.z
        resident = sum(1 for cta in dump.ctas if dump.grid_of(cta) == grid)
        if 0 < resident < launched:
            out.append(
                f"Grid {grid.grid_id} has {launched:,} blocks, of which {resident:,} were resident; the others had "
                "ended or not started. If resident blocks wait for one that has not started, they wait for ever."
            )
    return out
