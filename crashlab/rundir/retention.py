"""Keep the dumps of a run below a cap: the first and the newest stay, those between go."""

from __future__ import annotations

import os
from collections.abc import Container, Sequence
from typing import NamedTuple


class Dropped(NamedTuple):
    """A dump that was removed; what is known about it stays in the events."""

    path: str
    bytes: int


def choose(dumps: Sequence[tuple[str, float, int]], cap: int, keep: Container[str] = ()) -> tuple[str, ...]:
    """Which of ``(path, mtime, bytes)`` to remove so that all together are at most ``cap`` bytes.

    The earliest is the candidate origin and the newest the freshest: these two are never removed, and
    neither are those in ``keep``.
    """
    order = sorted(dumps, key=lambda row: (row[1], row[0]))
    total = sum(row[2] for row in order)
    out = []
    for path, _, size in order[1:-1]:
        if total <= cap:
            break
        if path in keep:
            continue
        out.append(path)
        total -= size
    return tuple(out)


def enforce(paths: Sequence[str], cap: int | None, keep: Container[str] = ()) -> tuple[Dropped, ...]:
    """Remove what :func:`choose` says. A file that cannot be removed is left out of the answer."""
    if cap is None:
        return ()
    rows = []
    for path in paths:
        try:
            found = os.stat(path)
        except OSError:
            continue
        rows.append((path, found.st_mtime, found.st_size))
    sizes = {path: size for path, _, size in rows}
    out = []
    for path in choose(rows, cap, keep):
        try:
            os.unlink(path)
        except OSError:
            continue
        out.append(Dropped(path, sizes[path]))
    return tuple(out)
