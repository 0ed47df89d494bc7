"""Which options each view of ``inspect`` takes, and whether the place that they name is in the dump."""

from __future__ import annotations

from collections.abc import Iterable

from crashlab.errors import UsageError
from crashlab.gpucore.dump import CoreDump
from crashlab.inspection.select import Focus

_WARPS = ("device", "sm", "grid", "block", "warp", "faulting")
_LANES = (*_WARPS, "lane")

OPTIONS: dict[str, tuple[str, ...]] = {
    "kernels": ("device", "grid"),
    "devices": ("device",),
    "contexts": ("device",),
    "sms": ("device", "sm"),
    "blocks": ("device", "sm", "grid", "block"),
    "warps": _WARPS,
    "lanes": _LANES,
    "registers": _LANES,
    "backtrace": _LANES,
    "modules": (),
    "params": ("grid",),
    "constants": ("grid",),
    "sass": ("pc", "sass_by", "nvdisasm"),
    "memory": (*_LANES, "address", "space", "offset", "length"),
    "sections": (),
    "meta": (),
    "cubin": ("module", "output"),
}
"""Parameter names by view; ``--json`` is taken by all but cubin."""


def check_options(view: str, given: frozenset[str], space: object = None) -> None:
    """UsageError for an option that a view cannot follow, with those that it takes."""
    allowed = set(OPTIONS[view])
    if view != "cubin":
        allowed.add("as_json")
    if view == "memory":
        allowed -= _unused_in_memory(given, space)
    for name in sorted(given - allowed):
        takes = ", ".join(sorted(_flag(n) for n in allowed)) or "no options"
        which = "" if view != "memory" else _memory_case(given, space)
        raise UsageError(
            f"{_flag(name)} does not apply to the {view} view{which}.", hint=f"It takes {takes}."
        )


def _unused_in_memory(given: frozenset[str], space: object) -> set[str]:
    if "address" in given:
        return {*_LANES, "space", "offset"}
    if space is None:
        return {*_LANES, "offset", "length"}
    return {"address", "lane"} if space == "shared" else {"address"}


def _memory_case(given: frozenset[str], space: object) -> str:
    if "address" in given:
        return " with --address"
    return f" with --space {space}" if space is not None else " without --address or --space"


def _flag(name: str) -> str:
    return "--json" if name == "as_json" else "--" + name.replace("_", "-")


def check_place(dump: CoreDump, focus: Focus) -> None:
    """UsageError when the dump has no such device, SM or grid, with those that it has."""
    devices = [dump.device_index(device) for device in dump.devices]
    _check("device", focus.device, devices)
    on_device = [sm for sm in dump.sms if focus.device in (None, dump.device_index(dump.device_of(sm)))]
    _check("sm", focus.sm, [sm.sm_id for sm in on_device])
    _check("grid", focus.grid, [grid.grid_id for grid in dump.grids])
    if focus.lane is not None and not 0 <= focus.lane < 32:
        raise UsageError(f"A warp has no lane {focus.lane}.", hint="Lanes are 0 to 31.")


def _check(what: str, wanted: int | None, there: Iterable[int | None]) -> None:
    known = sorted({number for number in there if number is not None})
    if wanted is None or wanted in known:
        return
    name = "SM" if what == "sm" else what
    hint = f"It has {name} {_ranges(known)}." if known else f"It names no {name} at all."
    raise UsageError(f"The dump has no {name} {wanted}.", hint=hint)


def _ranges(numbers: list[int]) -> str:
    """``0 to 131``, ``3, 5 to 7``; the first ones of many."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    shown = [str(a) if a == b else f"{a} to {b}" for a, b in runs[:8]]
    return ", ".join(shown) + (", …" if len(runs) > 8 else "")
