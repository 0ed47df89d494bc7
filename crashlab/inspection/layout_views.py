"""Views of the file itself: metadata, section counts, constant banks."""

from __future__ import annotations

import time

from crashlab.facts import Hex
from crashlab.gpucore import layout
from crashlab.gpucore.dump import CoreDump
from crashlab.inspection.select import Focus
from crashlab.inspection.state import table
from crashlab.inspection.table import Table


def meta(dump: CoreDump, _focus: Focus) -> Table:
    """Who wrote the dump, when, with which settings."""
    row = dump.meta
    if row is None:
        return table("fact value", (), "this driver generation (before r565) writes no metadata")
    flags = row.flags or 0
    names = [name for bit, name in layout.META_FLAGS.items() if flags & bit]
    unknown = flags & ~sum(layout.META_FLAGS)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(row.unix_time)) if row.unix_time else None
    return table(
        "fact value",
        (
            ("generator", dump.string(row.generator_name)),
            ("driver", None if row.driver_major is None else f"{row.driver_major}.{row.driver_minor}"),
            ("cuda", None if row.cuda_major is None else f"{row.cuda_major}.{row.cuda_minor}"),
            ("flags", ", ".join([*names, *([f"unknown {hex(unknown)}"] if unknown else [])]) or None),
            ("written", stamp),
            ("compression", dump.compression),
        ),
    )


def sections(dump: CoreDump, _focus: Focus) -> Table:
    """How many sections of each kind the dump has and how large they are; unknown kinds are listed too."""
    totals: dict[int, list[int]] = {}
    for index in range(len(dump.sections)):
        section = dump.sections[index]
        entry = totals.setdefault(section.type, [0, 0])
        entry[0] += 1
        entry[1] += section.size
    rows = []
    for kind, (count, size) in sorted(totals.items()):
        number = kind - layout.SECTION_BASE if kind >= layout.SECTION_BASE else None
        name = (
            layout.TYPE_NAMES.get(number, "unknown")
            if number is not None
            else {0: "null", 3: "strings"}.get(kind, "ELF")
        )
        rows.append((Hex(kind), name, count, size))
    return table("type kind sections bytes", rows)


def constants(dump: CoreDump, focus: Focus) -> Table:
    """Constant banks of each grid."""
    rows = []
    for grid in dump.grids:
        if focus.grid not in (None, grid.grid_id):
            continue
        for bank in dump.constant_banks(grid) or ():
            rows.append((grid.grid_id, bank.bank_id, Hex(bank.address), bank.size))
    return table("grid bank address bytes", rows, None if rows else "no constant banks in this dump")
