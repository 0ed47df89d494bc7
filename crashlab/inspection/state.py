"""Views of the hardware's state: devices, SMs, kernels, blocks, warps, lanes, registers."""

from __future__ import annotations

from collections.abc import Iterable

from crashlab.cubin.demangle import demangle
from crashlab.facts import Hex
from crashlab.gpucore import exceptions, layout
from crashlab.gpucore.dump import CoreDump
from crashlab.gpucore.rows import GridRow
from crashlab.inspection.select import Focus, Place, lanes, warps
from crashlab.inspection.table import Table
from crashlab.postmortem.codemap import CodeMap
from crashlab.postmortem.words import counted

_ROWS = 10_000


def hexed(value: int | None) -> Hex | None:
    """An address or mask for display; absent stays absent."""
    return None if value is None else Hex(value)


def table(columns: str, rows: Iterable[tuple[object, ...]], note: str | None = None) -> Table:
    """A table of at most 10,000 rows; ``note`` says when it was cut."""
    kept: list[tuple[object, ...]] = []
    for row in rows:
        if len(kept) == _ROWS:
            note = f"only the first {_ROWS:,} rows; narrow it with --device, --sm, --block, --warp or --lane"
            break
        kept.append(row)
    return Table(tuple(columns.split()), tuple(kept), note)


def devices(dump: CoreDump, focus: Focus) -> Table:
    """One row a GPU: name, architecture, SMs, warps per SM, registers per lane."""
    return table(
        "device name arch sms warps_per_sm regs_per_lane pci_bus type sm_type",
        (
            (
                dump.device_index(d),
                dump.string(d.dev_name),
                d.arch,
                d.num_sms,
                d.num_warps_per_sm,
                d.num_regs_per_lane,
                hexed(d.pci_bus_id),
                dump.string(d.dev_type),
                dump.string(d.sm_type),
            )
            for d in dump.devices
            if focus.device in (None, dump.device_index(d))
        ),
    )


def contexts(dump: CoreDump, focus: Focus) -> Table:
    """One row a CUDA context: its address windows and the host thread it belongs to."""
    return table(
        "device context shared_window local_window global_window thread",
        (
            (
                dump.device_index(dump.device_of(c)),
                hexed(c.context_id),
                hexed(c.shared_window_base),
                hexed(c.local_window_base),
                hexed(c.global_window_base),
                c.tid,
            )
            for c in dump.contexts
            if focus.device in (None, dump.device_index(dump.device_of(c)))
        ),
    )


def sms(dump: CoreDump, focus: Focus) -> Table:
    """SMs with blocks or a recorded exception (all of them when one is asked for)."""
    blocks: dict[tuple[int, int], int] = {}
    for cta in dump.ctas:
        header = dump.sections[cta.section]
        blocks[header.parent, header.row] = blocks.get((header.parent, header.row), 0) + 1
    rows = []
    idle = 0
    for sm in dump.sms:
        device = dump.device_index(dump.device_of(sm))
        if focus.device not in (None, device) or focus.sm not in (None, sm.sm_id):
            continue
        count = blocks.get((sm.section, sm.row), 0)
        if not count and not sm.exception and focus.sm is None:
            idle += 1
            continue
        title = exceptions.title(sm.exception) if sm.exception else None
        pc = hexed(sm.errorpc) if sm.errorpc_valid else None
        rows.append(
            (device, sm.sm_id, count, sm.exception or None, title, pc, dump.string(sm.exception_string))
        )
    note = None
    if idle:
        note = f"{counted(idle, 'SM')} without blocks and without an exception {'is' if idle == 1 else 'are'} not shown"
    return table("device sm blocks exception name errorpc driver_text", rows, note)


def kernels(dump: CoreDump, focus: Focus) -> Table:
    """One row a kernel that was running: name, launch shape, blocks still resident."""
    codemap = CodeMap(dump)
    resident: dict[GridRow | None, list[int]] = {}
    for cta in dump.ctas:
        sm = dump.sm_of(cta)
        resident.setdefault(dump.grid_of(cta), []).append(sm.sm_id if sm else -1)
    rows = []
    for grid in dump.grids:
        device = dump.device_index(dump.device_of(grid))
        if focus.device not in (None, device) or focus.grid not in (None, grid.grid_id):
            continue
        mangled = codemap.kernel_of(grid)
        held = resident.get(grid, [])
        rows.append(
            (
                device,
                grid.grid_id,
                demangle(mangled) if mangled else None,
                grid.grid_dim,
                grid.block_dim,
                grid.cluster_dim if grid.cluster_dim and grid.cluster_dim.x else None,
                grid.num_regs,
                len(held),
                len(set(held)),
                hexed(grid.function_entry),
                hexed(grid.context_id),
                grid.parent_grid_id or None,
            )
        )
    return table(
        "device grid kernel grid_dim block_dim cluster registers resident_blocks on_sms entry context parent",
        rows,
    )


def blocks(dump: CoreDump, focus: Focus) -> Table:
    """One row a resident block: kernel, SM, coordinates."""
    rows = []
    for cta in dump.ctas:
        sm = dump.sm_of(cta)
        device = dump.device_index(dump.device_of(sm)) if sm else None
        if focus.device not in (None, device) or focus.block not in (None, cta.block):
            continue
        if focus.sm is not None and (sm is None or sm.sm_id != focus.sm):
            continue
        if focus.grid not in (None, cta.grid_id):
            continue
        count = sum(
            s.size // (s.entry_size or 1)
            for s in dump.sections.children(cta.section)
            if s.row == cta.row and s.kind == layout.WARP_TABLE
        )
        rows.append((device, sm.sm_id if sm else None, cta.grid_id, cta.block, cta.cluster, count))
    return table("device sm grid block cluster warps", rows)


def _place(dump: CoreDump, at: Place) -> tuple[object, ...]:
    return (
        dump.device_index(at.device),
        at.sm.sm_id if at.sm else None,
        at.cta.block if at.cta else None,
        at.warp.warp_id,
    )


def warp_table(dump: CoreDump, focus: Focus) -> Table:
    """One row a warp: place, lane masks, PC and where in the code that is."""
    codemap = CodeMap(dump)

    def rows() -> Iterable[tuple[object, ...]]:
        for at in warps(dump, focus):
            first = next(iter(dump.lanes(at.warp)), None)
            hit = codemap.at(first.virtual_pc, at.grid) if first else None
            function = hit.function if hit else None
            spot = f"{function.name}+{hex(function.offset or 0)}" if function else None
            codes = dump.lane_exceptions(at.warp)
            yield (
                *_place(dump, at),
                at.cta.grid_id if at.cta else None,
                hexed(at.warp.valid_lanes),
                hexed(at.warp.active_lanes),
                hexed(at.warp.errorpc) if at.warp.errorpc_valid else None,
                tuple(codes) or None,
                bool(at.warp.is_broken) if at.warp.is_broken is not None else None,
                at.warp.shared_mem_size,
                hexed(first.virtual_pc) if first else None,
                spot,
            )

    return table("device sm block warp grid valid active errorpc exception broken shared_bytes pc at", rows())


def lane_table(dump: CoreDump, focus: Focus) -> Table:
    """One row a thread: coordinates, PC, state, exception."""

    def rows() -> Iterable[tuple[object, ...]]:
        for at in warps(dump, focus):
            active = at.warp.active_lanes
            for lane in lanes(dump, at, focus):
                is_active = (
                    None if active is None or lane.lane is None else bool(active >> min(lane.lane, 63) & 1)
                )
                yield (
                    *_place(dump, at),
                    lane.lane,
                    lane.thread,
                    is_active,
                    hexed(lane.virtual_pc),
                    lane.exception or None,
                    exceptions.title(lane.exception) if lane.exception else None,
                    lane.call_depth,
                )

    return table("device sm block warp lane thread active pc exception name call_depth", rows())


def registers(dump: CoreDump, focus: Focus) -> Table:
    """One row a thread and register; ``lane`` is absent for uniform registers, which belong to the warp."""

    def rows() -> Iterable[tuple[object, ...]]:
        for at in warps(dump, focus):
            place = _place(dump, at)
            for prefix, values in (
                ("UR", dump.uniform_registers(at.warp)),
                ("UP", dump.uniform_predicates(at.warp)),
            ):
                for number, value in enumerate(values or ()):
                    yield (*place, None, f"{prefix}{number}", Hex(value), value)
            for lane in lanes(dump, at, focus):
                for prefix, values in (("R", dump.registers(lane)), ("P", dump.predicates(lane))):
                    for number, value in enumerate(values or ()):
                        yield (*place, lane.lane, f"{prefix}{number}", Hex(value), value)

    return table("device sm block warp lane register hex value", rows())


def backtraces(dump: CoreDump, focus: Focus) -> Table:
    """One row a level of a thread's device call stack, innermost first."""
    codemap = CodeMap(dump)

    def rows() -> Iterable[tuple[object, ...]]:
        for at in warps(dump, focus):
            for lane in lanes(dump, at, focus):
                stack = [
                    lane.virtual_pc,
                    *(b.virtual_return_address or b.return_address for b in dump.backtrace(lane) or ()),
                ]
                for level, pc in enumerate(stack):
                    hit = codemap.at(pc, at.grid)
                    function = hit.function if hit else None
                    source = hit.source if hit else None
                    yield (
                        *_place(dump, at),
                        lane.lane,
                        level,
                        Hex(pc),
                        f"{function.name}+{hex(function.offset or 0)}" if function else None,
                        f"{source.file}:{source.line}" if source else None,
                    )

    return table("device sm block warp lane level pc function source", rows())
