"""Generic addresses by the windows of the context: shared memory (of any block of the cluster) and local memory."""

from __future__ import annotations

from typing import NamedTuple

from crashlab.facts import Dim3
from crashlab.gpucore.dump import CoreDump
from crashlab.postmortem.accesses import Access
from crashlab.postmortem.attribute import Attribution
from crashlab.postmortem.judge import WINDOW

_CLUSTER_LIMIT = 16
"""Blocks of the largest cluster (H100 with the non-portable size)."""
_CLUSTER_CODES = (17, 18)


class Placed(NamedTuple):
    """Accesses with addresses relative to ``base``; ``ranks`` are the blocks of the cluster they went to."""

    accesses: tuple[Access, ...]
    space: str
    base: int = 0
    ranks: tuple[int, ...] = ()
    blocks: int = 1


def place(dump: CoreDump, attribution: Attribution, found: tuple[Access, ...], space: str | None) -> Placed:
    """Decide the space of generic addresses; those that fit no window are global."""
    if space != "generic":
        return Placed(found, space or "global")
    addresses = [a.address for a in found if a.address is not None]
    grid = attribution.group.reports[0].grid
    blocks = _blocks(grid.cluster_dim if grid else None)
    for context in dump.contexts:
        if grid is not None and grid.context_id not in (None, context.context_id):
            continue
        shared, local = context.shared_window_base, context.local_window_base
        if shared is not None and all(shared <= a < shared + WINDOW for a in addresses):
            return Placed(_moved(found, shared), "shared", shared)
        if local is not None and all(local <= a < local + WINDOW for a in addresses):
            return Placed(_moved(found, local), "local", local)
        cluster = blocks > 1 or attribution.group.code in _CLUSTER_CODES
        if (
            shared is not None
            and cluster
            and all(shared <= a < shared + _CLUSTER_LIMIT * WINDOW for a in addresses)
        ):
            ranks = tuple(sorted({(a - shared) // WINDOW for a in addresses}))
            return Placed(_moved(found, shared, WINDOW), "shared::cluster", shared, ranks, blocks)
    return Placed(found, "global")


def _blocks(cluster: Dim3 | None) -> int:
    return 1 if cluster is None else max(1, cluster.x) * max(1, cluster.y) * max(1, cluster.z)


def _moved(found: tuple[Access, ...], base: int, modulo: int | None = None) -> tuple[Access, ...]:
    def relative(address: int) -> int:
        return address - base if modulo is None else (address - base) % modulo

    return tuple(a._replace(address=None if a.address is None else relative(a.address)) for a in found)
