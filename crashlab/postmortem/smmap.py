"""The GPUs of a dump as a map: which SMs ran what, which faulted, and the lane masks of faulting warps."""

from __future__ import annotations

from crashlab import facts
from crashlab.cubin.demangle import demangle
from crashlab.gpucore import exceptions
from crashlab.gpucore.dump import CoreDump
from crashlab.gpucore.rows import CtaRow, DeviceRow, GridRow, WarpRow
from crashlab.postmortem.arguments import pointer_arguments
from crashlab.postmortem.codemap import CodeMap

_WARP_LIMIT = 64
_LANDMARK_LIMIT = 40
_SM_LIMIT = 4096
_KERNEL_LIMIT = 32


def gpus(dump: CoreDump, verdict: facts.Verdict, codemap: CodeMap | None = None) -> tuple[facts.Gpu, ...]:
    """One entry for each device of the dump, in the order of its table.

    ``landmarks`` are what the verdict's address can be measured against: dumped allocations and the
    pointer arguments of the verdict's launch, the nearest ones first found and then sorted by address.
    """
    codemap = codemap or CodeMap(dump)
    blocks: dict[tuple[int, int], list[CtaRow]] = {}
    for cta in dump.ctas:
        header = dump.sections[cta.section]
        blocks.setdefault((header.parent, header.row), []).append(cta)
    warps: dict[tuple[int, int], list[WarpRow]] = {}
    for warp in dump.warps:
        header = dump.sections[warp.section]
        warps.setdefault((header.parent, header.row), []).append(warp)
    accused = verdict.where.device if verdict.where else None
    out = []
    for device in dump.devices:
        reader = _DeviceReader(dump, codemap, device, blocks, warps)
        number = dump.device_index(device)
        out.append(
            facts.Gpu(
                device=number,
                name=dump.string(device.dev_name),
                arch=device.arch,
                sm_count=device.num_sms or None,
                sms=reader.sms(),
                warps=tuple(reader.faulting[:_WARP_LIMIT]),
                kernels=tuple(reader.names),
                landmarks=_landmarks(dump, codemap, device, verdict) if number == accused else (),
            )
        )
    return tuple(out)


class _DeviceReader:
    """Collects one device: kernel names get a number when they are first met."""

    def __init__(
        self,
        dump: CoreDump,
        codemap: CodeMap,
        device: DeviceRow,
        blocks: dict[tuple[int, int], list[CtaRow]],
        warps: dict[tuple[int, int], list[WarpRow]],
    ) -> None:
        self._dump, self._codemap, self._device = dump, codemap, device
        self._blocks, self._warps = blocks, warps
        self._numbers: dict[GridRow | None, int | None] = {}
        self.names: list[str] = []
        self.faulting: list[facts.WarpState] = []

    def sms(self) -> tuple[facts.SmState, ...]:
        out = []
        for sm in self._dump.sms[:_SM_LIMIT]:
            if self._dump.device_of(sm) != self._device:
                continue
            blocks = self._blocks.get((sm.section, sm.row), [])
            count, codes, kernels = 0, [sm.exception or 0], []
            for cta in blocks:
                number = self._kernel(self._dump.grid_of(cta))
                if number is not None and number not in kernels:
                    kernels.append(number)
                members = self._warps.get((cta.section, cta.row), [])
                count += len(members)
                for warp in members:
                    codes.append(self._faulting(sm.sm_id, cta, warp, sm.exception))
            code = next((c for c in codes if c), 0)
            if blocks or code:
                name = exceptions.title(code) if code else None
                out.append(facts.SmState(sm.sm_id, len(blocks), count, tuple(kernels), name))
        return tuple(sorted(out, key=lambda state: state.sm))

    def _kernel(self, grid: GridRow | None) -> int | None:
        if grid in self._numbers:
            return self._numbers[grid]
        mangled = self._codemap.kernel_of(grid)
        number = None
        if mangled is not None:
            name = demangle(mangled)
            if name not in self.names and len(self.names) < _KERNEL_LIMIT:
                self.names.append(name)
            number = self.names.index(name) if name in self.names else None
        self._numbers[grid] = number
        return number

    def _faulting(self, sm: int, cta: CtaRow, warp: WarpRow, sm_code: int | None) -> int:
        """The warp's exception code, 0 when it has none; remembers the masks of one that has."""
        counts = self._dump.lane_exceptions(warp)
        if not counts and not warp.errorpc_valid and not warp.is_broken:
            return 0
        if len(self.faulting) < _WARP_LIMIT:
            marked = 0
            for lane in self._dump.lanes(warp) if counts else ():
                if lane.exception and lane.lane is not None and lane.lane < 64:
                    marked |= 1 << lane.lane
            self.faulting.append(
                facts.WarpState(
                    sm,
                    warp.warp_id,
                    cta.block,
                    _mask(warp.valid_lanes),
                    _mask(warp.active_lanes),
                    facts.Hex(marked) if counts else None,
                )
            )
        return max(counts, key=lambda c: counts[c]) if counts else (sm_code or 0)


def _mask(value: int | None) -> facts.Hex | None:
    return None if value is None else facts.Hex(value)


def _landmarks(
    dump: CoreDump, codemap: CodeMap, device: DeviceRow, verdict: facts.Verdict
) -> tuple[facts.Landmark, ...]:
    found = [
        facts.Landmark("dumped allocation", facts.Hex(section.address), section.size)
        for section in dump.memory_ranges()
        if section.size
    ]
    launch = verdict.kernel.launch if verdict.kernel else None
    grid = next(
        (g for g in dump.grids if launch and g.grid_id == launch.grid_id and dump.device_of(g) == device),
        None,
    )
    for argument in pointer_arguments(dump, codemap, grid):
        found.append(facts.Landmark(argument.label, facts.Hex(argument.value)))
    value = verdict.address.value if verdict.address else None
    if value is not None:
        found.sort(key=lambda mark: _distance(mark, value))
    return tuple(sorted(found[:_LANDMARK_LIMIT], key=lambda mark: (mark.start, mark.size or 0)))


def _distance(mark: facts.Landmark, address: int) -> int:
    if address < mark.start:
        return mark.start - address
    return max(0, address - mark.start - (mark.size or 0))
