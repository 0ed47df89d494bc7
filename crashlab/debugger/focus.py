"""``[Current focus set to CUDA kernel 0, grid 4, block (0,0,0), …]`` in all its spellings."""

from __future__ import annotations

import re

from crashlab.debugger.rows import Focus
from crashlab.facts import Dim3

_COORDINATE = re.compile(
    r"(kernel|grid|clusterdim|cluster|block|thread|device|sm|warp|lane)"
    r"(?:\((\d{1,10}),(\d{1,10}),(\d{1,10})\)|(-?\d{1,20})(?![\d(]))"
)
_FIELDS = {"clusterdim": "cluster_dim"}
_TRIPLES = frozenset({"cluster", "cluster_dim", "block", "thread"})


def parse_focus(text: str) -> Focus | None:
    """The coordinates in a focus message; None when there are none.

    Blanks are dropped before reading, because people paste the message hard-wrapped at any column.
    A coordinate that cuda-gdb prints as ``*``, ``current`` or ``invalid`` stays None.
    """
    squeezed = "".join(text.split())
    found: dict[str, Dim3 | int] = {}
    for match in _COORDINATE.finditer(squeezed):
        field = _FIELDS.get(match[1], match[1])
        triple = match[2] is not None
        if triple != (field in _TRIPLES) or field in found:
            continue
        found[field] = Dim3(int(match[2]), int(match[3]), int(match[4])) if triple else int(match[5])
    return Focus(**found) if found else None  # type: ignore[arg-type]
