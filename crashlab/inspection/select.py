"""Which part of a dump a view shows: filters given by the user, resolved to rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from crashlab.errors import UsageError
from crashlab.facts import Dim3
from crashlab.gpucore.dump import CoreDump
from crashlab.gpucore.rows import CtaRow, DeviceRow, GridRow, LaneRow, SmRow, WarpRow


class Focus(NamedTuple):
    """Filters; None matches everything. ``sm`` and ``warp`` are hardware ids, ``grid`` a grid id."""

    device: int | None = None
    sm: int | None = None
    block: Dim3 | None = None
    warp: int | None = None
    lane: int | None = None
    grid: int | None = None
    faulting: bool = False


class Place(NamedTuple):
    """A warp with everything above it."""

    device: DeviceRow | None
    sm: SmRow | None
    cta: CtaRow | None
    grid: GridRow | None
    warp: WarpRow


def parse_dim3(text: str) -> Dim3:
    """``"1,2,3"`` (or ``"1"``, ``"1,2"``) as coordinates; UsageError otherwise."""
    parts = text.strip("() ").split(",")
    try:
        values = [int(part, 0) for part in parts]
    except ValueError:
        values = []
    if not 1 <= len(values) <= 3 or any(v < 0 for v in values):
        raise UsageError(f"{text!r} is no block index.", hint="Write it as x,y,z, for example --block 3,0,0.")
    return Dim3(*values, *([0] * (3 - len(values))))


def warps(dump: CoreDump, focus: Focus) -> Iterator[Place]:
    """Resident warps that match, in table order."""
    for warp in dump.warps:
        if focus.warp is not None and warp.warp_id != focus.warp:
            continue
        cta = dump.cta_of(warp)
        if focus.block is not None and (cta is None or cta.block != focus.block):
            continue
        sm = dump.sm_of(cta) if cta else None
        if focus.sm is not None and (sm is None or sm.sm_id != focus.sm):
            continue
        device = dump.device_of(sm) if sm else None
        if focus.device is not None and dump.device_index(device) != focus.device:
            continue
        grid = dump.grid_of(cta) if cta else None
        if focus.grid is not None and (grid is None or grid.grid_id != focus.grid):
            continue
        if (
            focus.faulting
            and not warp.errorpc_valid
            and not warp.is_broken
            and not dump.lane_exceptions(warp)
        ):
            continue
        yield Place(device, sm, cta, grid, warp)


def lanes(dump: CoreDump, place: Place, focus: Focus) -> Iterator[LaneRow]:
    """The matching threads of a warp."""
    for lane in dump.lanes(place.warp):
        if focus.lane is None or lane.lane == focus.lane:
            yield lane
