"""Read nvdisasm's register life ranges: an oracle for what each instruction defines and reads.

``nvdisasm -c -plr -lrm narrow`` prints a column a register behind each instruction: ``^`` defined,
``v`` read, ``x`` both, ``:`` alive.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]+)\*/\s+(\S[^;]*?)\s*;?\s*$")
_FILES = {"GPR": "R", "PRED": "P", "UGPR": "UR", "UPRED": "UP"}


class Row(NamedTuple):
    """One instruction with the registers that the oracle says it writes and reads."""

    pc: int
    text: str
    defines: frozenset[str]
    reads: frozenset[str]


def rows(listing: str) -> Iterator[Row]:
    """Every instruction of a listing that has life ranges."""
    files: list[str] = []
    starts: list[int | None] = []
    for line in listing.splitlines():
        cut = line.find("// |")
        if cut < 0:
            continue
        left, cells = line[:cut], line[cut + 3 :].split("|")[1:-1]
        if any(cell.strip() in _FILES for cell in cells):
            files = [_FILES.get(cell.strip(), "") for cell in cells]
        elif any(re.search(r"#\s*0", cell) for cell in cells):
            starts = [cell.find("#") + 2 if "#" in cell else None for cell in cells]
        found = _INSTRUCTION.match(left)
        if found is None or len(files) != len(cells) or len(starts) != len(cells):
            continue
        defines, reads = set(), set()
        for prefix, cell, start in zip(files, cells, starts, strict=True):
            if start is None or not prefix:
                continue
            for number, mark in enumerate(cell[start:]):
                if mark in "^x":
                    defines.add(f"{prefix}{number}")
                if mark in "vx":
                    reads.add(f"{prefix}{number}")
        text = re.sub(r"\s+", " ", found[2])
        yield Row(int(found[1], 16), text, frozenset(defines), frozenset(reads))
