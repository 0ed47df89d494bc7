"""SASS of real faults: whole code sections of recorded GPU core dumps, with the PCs that matter."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import NamedTuple

from crashlab.sass.line import SassLine

DATA = Path(__file__).parents[2] / "data" / "sass"


class Fault(NamedTuple):
    """``lane_pcs`` are the distinct PCs at which lanes of the faulting warps stood."""

    errorpc: int
    lane_pcs: tuple[int, ...]
    lines: tuple[SassLine, ...]

    @property
    def text(self) -> str:
        return next(line.text for line in self.lines if line.pc == self.errorpc)


def faults() -> dict[str, Fault]:
    """By the name of the scene, as in the corpus of dumps."""
    raw = json.loads(lzma.decompress((DATA / "faults.json.xz").read_bytes()))
    return {
        name: Fault(
            one["errorpc"],
            tuple(one["lane_pcs"]),
            tuple(SassLine(one["base"] + 16 * i, text) for i, text in enumerate(one["lines"])),
        )
        for name, one in raw.items()
    }
