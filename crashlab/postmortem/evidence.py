"""What the hardware left behind about faults, grouped: the raw material of attribution."""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

from typing import NamedTuple

from crashlab.gpucore.dump import CoreDump
from crashlab.gpucore.rows import CtaRow, DeviceRow, GridRow, LaneRow, SmRow, WarpRow

ASSERT = 12


class WarpEvidence(NamedTuple):
    """One warp that reports a fault, or one SM that reports it for a warp that has exited."""

    code: int | None
    pc: int | None
    pc_source: str
    device: DeviceRow | None
    sm: SmRow | None
    cta: CtaRow | None = None
    warp: WarpRow | None = None
    grid: GridRow | None = None
    lanes: int = 0


class FaultGroup(NamedTuple):
    """All reports of one (exception, PC). ``sms`` are (device, SM id) pairs."""

    code: int | None
    pc: int | None
    pc_source: str
    reports: tuple[WarpEvidence, ...]
    sms: tuple[tuple[int, int], ...]
    driver_text: str | None = None

    @property
    def warps(self) -> tuple[WarpEvidence, ...]:
        """The reports that still have their warp."""
        return tuple(r for r in self.reports if r.warp is not None)

    @property
    def exited(self) -> bool:
        """True when every faulting warp had exited before the GPU was stopped."""
        return not self.warps

    @property
    def lanes(self) -> int:
        return sum(r.lanes for r in self.reports)


def collect(dump: CoreDump) -> tuple[FaultGroup, ...]:
    """Every distinct fault in a dump, the verdict first.

    Order: most SMs, then lowest device, SM and warp. A warp's own record stands for its SM's copy
    of it; an SM record that no warp explains is a fault of a warp that has exited.
    """
    reports = list(_warp_reports(dump))
    explained = {(r.sm.section, r.sm.row, r.code) for r in reports if r.sm is not None}
    explained_pcs = {(r.sm.section, r.sm.row, r.pc) for r in reports if r.sm is not None}
    for sm in dump.sms:
        pc = sm.errorpc if sm.errorpc_valid else None
        if not sm.exception and pc is None:
            continue
        seen = (
            (sm.section, sm.row, sm.exception) in explained
            if pc is None
            else (sm.section, sm.row, pc) in explained_pcs
        )
        if not seen:
            reports.append(WarpEvidence(sm.exception or None, pc, "sm-errorpc", dump.device_of(sm), sm))
    if not reports:
        reports = list(_broken_warps(dump))
    return _group(dump, reports)


def _warp_reports(dump: CoreDump) -> list[WarpEvidence]:
    out = []
    for warp in dump.warps:
        codes = dump.lane_exceptions(warp)
        if not codes and not warp.errorpc_valid:
            continue
        cta, sm, device, grid = _place(dump, warp)
        code = max(codes, key=lambda c: codes[c]) if codes else (sm.exception if sm else None)
        if warp.errorpc_valid:
            out.append(
                WarpEvidence(
                    code or None, warp.errorpc, "errorpc", device, sm, cta, warp, grid, sum(codes.values())
                )
            )
        else:
            pc = _stopped_at(dump, warp)
            out.append(
                WarpEvidence(code or None, pc, "lane-pc", device, sm, cta, warp, grid, sum(codes.values()))
            )
    return out


def _broken_warps(dump: CoreDump) -> list[WarpEvidence]:
    """Warps that stopped at a breakpoint without any exception: ``__trap()``."""
    out = []
    for warp in dump.warps:
        if warp.is_broken:
            cta, sm, device, grid = _place(dump, warp)
            out.append(WarpEvidence(None, _stopped_at(dump, warp), "lane-pc", device, sm, cta, warp, grid))
    return out


def _place(
    dump: CoreDump, warp: WarpRow
) -> tuple[CtaRow | None, SmRow | None, DeviceRow | None, GridRow | None]:
    cta = dump.cta_of(warp)
    sm = dump.sm_of(cta) if cta else None
    return cta, sm, dump.device_of(sm) if sm else None, dump.grid_of(cta) if cta else None


def faulting_lanes(dump: CoreDump, warp: WarpRow) -> tuple[LaneRow, ...]:
    """The lanes that carry an exception, else the active ones."""
    lanes = dump.lanes(warp)
    marked = tuple(lane for lane in lanes if lane.exception)
    return marked or active_lanes(warp, lanes)


def active_lanes(warp: WarpRow, lanes: tuple[LaneRow, ...]) -> tuple[LaneRow, ...]:
    """Those lanes that the warp's mask calls active; all of them where the dump has no mask."""
    mask = warp.active_lanes
    if mask is None:
        return lanes
    return tuple(lane for lane in lanes if lane.lane is not None and lane.lane < 64 and mask >> lane.lane & 1)


def _stopped_at(dump: CoreDump, warp: WarpRow) -> int | None:
    """Where the first marked (else active) lane stands. Not a fault address; asserts and traps stop there."""
    lanes = faulting_lanes(dump, warp) or dump.lanes(warp)
    return lanes[0].virtual_pc if lanes else None


def _group(dump: CoreDump, reports: list[WarpEvidence]) -> tuple[FaultGroup, ...]:
    grouped: dict[tuple[int | None, int | None], list[WarpEvidence]] = {}
    for report in reports:
        grouped.setdefault((report.code, report.pc), []).append(report)
    groups = []
    for (code, pc), members in grouped.items():
        members.sort(key=lambda r: _order(dump, r))
        places = sorted({(dump.device_index(r.device) or 0, r.sm.sm_id) for r in members if r.sm is not None})
        texts = (dump.string(r.sm.exception_string) for r in members if r.sm is not None)
        source = min((r.pc_source for r in members), key=("errorpc", "sm-errorpc", "lane-pc").index)
        groups.append(
            FaultGroup(code, pc, source, tuple(members), tuple(places), next((t for t in texts if t), None))
        )
    groups.sort(key=lambda g: (-len(g.sms), *_order(dump, g.reports[0])))
    return tuple(groups)


def _order(dump: CoreDump, report: WarpEvidence) -> tuple[int, int, int]:
    device = dump.device_index(report.device)
    return (
        1 << 30 if device is None else device,
        report.sm.sm_id if report.sm else 1 << 30,
        report.warp.warp_id or 0 if report.warp else 1 << 30,
    )
