"""Loops and conditional blocks with one way in, which a backward walk may step over."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from crashlab.sass.flow import Flow

LARGEST = 512


class Region(NamedTuple):
    """Instructions ``first`` + 1 to ``last``, entered only from the instruction at ``first``."""

    first: int
    last: int


def untouching_region(flow: Flow, at: int, names: Collection[str]) -> Region | None:
    """The region that joins at ``at``, when one way leads into it and nothing in it writes ``names``.

    Whatever was executed in it, ``names`` then hold what they held at ``first``.
    """
    before = flow.predecessors(at)
    if not before or before == (at - 1,):
        return None
    first, last = min(*before, at - 1), max(*before, at - 1)
    if first < 0 or last - first > LARGEST:
        return None
    for inside in range(first + 1, last + 1):
        defines = flow.defines(inside)
        if defines is None or inside in flow.calls or any(name in names for name in defines):
            return None
        if any(not first <= origin <= last for origin in flow.predecessors(inside)):
            return None
    return Region(first, last)
