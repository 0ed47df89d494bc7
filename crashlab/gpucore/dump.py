"""A GPU core dump, read lazily: tables on demand, parents by ``sh_link`` and row, memory never copied whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TypeVar

from crashlab.errors import UnreadableDump
from crashlab.gpucore import layout, table
from crashlab.gpucore.rows import (
    BacktraceRow,
    ConstantBankRow,
    ContextRow,
    CtaRow,
    DeviceRow,
    GridRow,
    LaneRow,
    MetaRow,
    ModuleRow,
    SmRow,
    WarpRow,
)
from crashlab.gpucore.sections import Section, SectionTable, read_string
from crashlab.gpucore.source import DumpPath, open_view

RowT = TypeVar("RowT")
_REGISTER_LIMIT = 1024


class CoreDump:
    """One dump. Everything is read when asked for; ``problems`` collects what contradicted itself.

    The tables hang together by section index and row number, as the file says: a block belongs to
    the SM at row ``sh_info`` of section ``sh_link``, whatever the names claim.
    """

    def __init__(self, view: memoryview, *, name: str = "", compression: str | None = None) -> None:
        self.view = view
        self.name = name
        self.size = len(view)
        self.compression = compression
        self.sections = SectionTable(view, len(view))
        self._problems: dict[str, None] = {}
        self._strings = self.sections.string_table()
        self._children: dict[int, dict[tuple[int, int], Section]] = {}

    @classmethod
    def open(cls, path: DumpPath) -> CoreDump:
        """Map a dump file (plain, gzip or xz); UnreadableDump when it is none or was cut short."""
        import os

        view, size, compression = open_view(path)
        try:
            return cls(view, name=os.path.basename(os.fspath(path)), compression=compression)
        except UnreadableDump as error:
            if compression is None or error.reason not in ("cut-short", "empty"):
                raise
            raise UnreadableDump(
                f"The {compression} file is cut short or damaged: only {size:,} bytes could be unpacked.",
                reason="cut-short",
                hint="Copy the file again; if it is whole, the dump was cut before it was compressed.",
            ) from error

    @property
    def problems(self) -> tuple[str, ...]:
        """What was damaged or absurd in the parts read so far, one sentence each."""
        return tuple(self._problems)

    def note(self, problem: str) -> None:
        """Remember a contradiction once; at most 200 of them."""
        if len(self._problems) < 200:
            self._problems.setdefault(problem)

    # --- bytes ---------------------------------------------------------------------------------

    def data(self, section: Section) -> memoryview:
        """A section's bytes; empty, with a problem noted, when they lie outside the file."""
        end = section.offset + section.size
        if end > self.size:
            self.note(
                f"Section {section.number} ({self.sections.name(section) or 'no name'}) lies outside the file: "
                f"bytes {section.offset:,} to {end:,} of {self.size:,}."
            )
            return self.view[:0]
        return self.view[section.offset : end]

    def string(self, index: int | None) -> str | None:
        """A string of ``.strtab``; None when the index is absent, 0 or out of range."""
        table_ = self._strings
        if not index or table_ is None or index >= table_.size:
            return None
        text = read_string(self.view, table_.offset + index, min(self.size, table_.offset + table_.size))
        return text or None

    def _rows(self, section: Section, kind: int, make: Callable[..., RowT]) -> Iterator[RowT]:
        data = self.data(section)
        stride = section.entry_size or table.default_stride(kind)
        count = len(data) // stride if stride else 0
        if len(data) % stride:
            self.note(
                f"Section {section.number} has {len(data):,} bytes, which is no multiple of its row size {stride}."
            )
        if count > layout.ROW_LIMITS[kind]:
            self.note(
                f"Section {section.number} claims {count:,} {layout.TYPE_NAMES[kind]}; only the first "
                f"{layout.ROW_LIMITS[kind]:,} were read."
            )
        return table.rows(data, kind, stride, section.number, make)

    def _table(self, kind: int, make: Callable[..., RowT]) -> tuple[RowT, ...]:
        return tuple(
            row for section in self.sections.of_kind(kind) for row in self._rows(section, kind, make)
        )

    def _sections_below(self, parent: int) -> dict[tuple[int, int], Section]:
        found = self._children.get(parent)
        if found is None:
            found = {}
            for section in self.sections.children(parent):
                found.setdefault((section.kind or 0, section.row), section)
            self._children[parent] = found
        return found

    def child(self, parent: int, row: int, kind: int) -> Section | None:
        """The section of ``kind`` that belongs to row ``row`` of table section ``parent``."""
        return self._sections_below(parent).get((kind, row))

    # --- tables --------------------------------------------------------------------------------

    @cached_property
    def devices(self) -> tuple[DeviceRow, ...]:
        return self._table(layout.DEVICE_TABLE, DeviceRow)

    @cached_property
    def contexts(self) -> tuple[ContextRow, ...]:
        return self._table(layout.CONTEXT_TABLE, ContextRow)

    @cached_property
    def modules(self) -> tuple[ModuleRow, ...]:
        return self._table(layout.MODULE_TABLE, ModuleRow)

    @cached_property
    def grids(self) -> tuple[GridRow, ...]:
        return self._table(layout.GRID_TABLE, GridRow)

    @cached_property
    def sms(self) -> tuple[SmRow, ...]:
        return self._table(layout.SM_TABLE, SmRow)

    @cached_property
    def ctas(self) -> tuple[CtaRow, ...]:
        """Every resident block. Empty block tables (most SMs of most dumps) cost nothing."""
        return tuple(
            row
            for section in self.sections.of_kind(layout.CTA_TABLE)
            if section.size
            for row in self._rows(section, layout.CTA_TABLE, CtaRow)
        )

    @cached_property
    def warps(self) -> tuple[WarpRow, ...]:
        return self._table(layout.WARP_TABLE, WarpRow)

    @cached_property
    def meta(self) -> MetaRow | None:
        """Producer facts; None before r565."""
        return next(iter(self._table(layout.META, MetaRow)), None)

    @cached_property
    def _lane_tables(self) -> dict[tuple[int, int], Section]:
        return {(s.parent, s.row): s for s in self.sections.of_kind(layout.LANE_TABLE)}

    def lanes(self, warp: WarpRow) -> tuple[LaneRow, ...]:
        """The threads of a warp, in row order."""
        section = self._lane_tables.get((warp.section, warp.row))
        return tuple(self._rows(section, layout.LANE_TABLE, LaneRow)) if section else ()

    def lane_exceptions(self, warp: WarpRow) -> dict[int, int]:
        """Exception code → how many lanes of the warp carry it; empty when none does."""
        section = self._lane_tables.get((warp.section, warp.row))
        if section is None:
            return {}
        stride = section.entry_size or table.default_stride(layout.LANE_TABLE)
        data = self.data(section)
        # One strided look at the low byte of the exception column: a dump of a busy GPU has tens of
        # thousands of lanes and nearly none of them faulted. Codes are small, so the low byte decides.
        if stride < 36 or not any(data[32::stride]):
            return {}
        counts: dict[int, int] = {}
        for lane in self.lanes(warp):
            if lane.exception:
                counts[lane.exception] = counts.get(lane.exception, 0) + 1
        return counts

    # --- parents -------------------------------------------------------------------------------

    def _parent_row(self, section: int, rows: dict[tuple[int, int], RowT]) -> RowT | None:
        header = self.sections[section]
        return rows.get((header.parent, header.row))

    @cached_property
    def _devices_at(self) -> dict[tuple[int, int], DeviceRow]:
        return {(row.section, row.row): row for row in self.devices}

    @cached_property
    def _sms_at(self) -> dict[tuple[int, int], SmRow]:
        return {(row.section, row.row): row for row in self.sms}

    @cached_property
    def _ctas_at(self) -> dict[tuple[int, int], CtaRow]:
        return {(row.section, row.row): row for row in self.ctas}

    def device_of(self, row: SmRow | GridRow | ContextRow) -> DeviceRow | None:
        return self._parent_row(row.section, self._devices_at)

    def sm_of(self, cta: CtaRow) -> SmRow | None:
        return self._parent_row(cta.section, self._sms_at)

    def cta_of(self, warp: WarpRow) -> CtaRow | None:
        return self._parent_row(warp.section, self._ctas_at)

    def context_of(self, module: ModuleRow) -> ContextRow | None:
        header = self.sections[module.section]
        return next((c for c in self.contexts if (c.section, c.row) == (header.parent, header.row)), None)

    @cached_property
    def _grids_by_id(self) -> dict[tuple[int, int], GridRow]:
        """(device row's table position, grid id) → grid; ids are unique for a device only."""
        out: dict[tuple[int, int], GridRow] = {}
        for grid in self.grids:
            header = self.sections[grid.section]
            out.setdefault((header.row, grid.grid_id), grid)
        return out

    def grid_of(self, cta: CtaRow) -> GridRow | None:
        """The launch a block belongs to, on the block's own device."""
        sm = self.sm_of(cta)
        if sm is None:
            return None
        return self._grids_by_id.get((self.sections[sm.section].row, cta.grid_id))

    def device_index(self, device: DeviceRow | None) -> int | None:
        """The device's number: its id where the dump has one, else its row."""
        if device is None:
            return None
        return device.dev_id if device.dev_id is not None else device.row

    # --- images --------------------------------------------------------------------------------

    def image(self, module: ModuleRow) -> memoryview | None:
        """The relocated cubin of a module; None when the dump has none."""
        section = self.child(module.section, module.row, layout.RELOCATED_IMAGE)
        return self.data(section) if section else None

    def unrelocated_image(self, module: ModuleRow) -> memoryview | None:
        """The cubin as it was loaded; left out of light dumps."""
        section = self.child(module.section, module.row, layout.ELF_IMAGE)
        return self.data(section) if section else None

    # --- state of one thread, warp or grid -----------------------------------------------------

    def _words(self, parent: int, row: int, kind: int) -> tuple[int, ...] | None:
        section = self.child(parent, row, kind)
        if section is None:
            return None
        data = self.data(section)
        count = min(len(data) // 4, _REGISTER_LIMIT)
        return tuple(data[: count * 4].cast("I"))

    def registers(self, lane: LaneRow) -> tuple[int, ...] | None:
        """R0, R1, … as unsigned 32-bit values; None when the dump has none for this thread."""
        return self._words(lane.section, lane.row, layout.REGISTERS)

    def predicates(self, lane: LaneRow) -> tuple[int, ...] | None:
        """P0, P1, … as 0 or 1 (the last one, PT, reads 1)."""
        return self._words(lane.section, lane.row, layout.PREDICATES)

    def uniform_registers(self, warp: WarpRow) -> tuple[int, ...] | None:
        """UR0, UR1, … of a warp."""
        return self._words(warp.section, warp.row, layout.UNIFORM_REGISTERS)

    def uniform_predicates(self, warp: WarpRow) -> tuple[int, ...] | None:
        return self._words(warp.section, warp.row, layout.UNIFORM_PREDICATES)

    def backtrace(self, lane: LaneRow) -> tuple[BacktraceRow, ...] | None:
        """The device call stack, innermost level first; empty when the thread is in no call."""
        section = self.child(lane.section, lane.row, layout.BACKTRACE)
        if section is None:
            return None
        return tuple(self._rows(section, layout.BACKTRACE, BacktraceRow))

    def local_memory(self, lane: LaneRow) -> Section | None:
        return self.child(lane.section, lane.row, layout.LOCAL_MEMORY)

    def shared_memory(self, cta: CtaRow) -> Section | None:
        return self.child(cta.section, cta.row, layout.SHARED_MEMORY)

    def parameters(self, grid: GridRow) -> memoryview | None:
        """The raw argument block of a launch."""
        section = self.child(grid.section, grid.row, layout.PARAMETERS)
        return self.data(section) if section else None

    def constant_banks(self, grid: GridRow) -> tuple[ConstantBankRow, ...] | None:
        section = self.child(grid.section, grid.row, layout.CONSTANT_BANK_TABLE)
        if section is None:
            return None
        return tuple(self._rows(section, layout.CONSTANT_BANK_TABLE, ConstantBankRow))

    def memory_ranges(self) -> Iterator[Section]:
        """Managed and global memory sections; ``address`` and ``size`` say what each covers."""
        for kind in (layout.MANAGED_MEMORY, layout.GLOBAL_MEMORY):
            yield from self.sections.of_kind(kind)

    def read_memory(self, address: int, length: int) -> bytes | None:
        """Bytes of dumped global or managed memory; None unless the whole range was dumped."""
        for section in self.memory_ranges():
            if section.address <= address and address + length <= section.address + section.size:
                start = section.offset + address - section.address
                if start + length <= self.size:
                    return bytes(self.view[start : start + length])
        return None
