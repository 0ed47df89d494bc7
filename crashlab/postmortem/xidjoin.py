"""The kernel log's Xid lines joined with the verdict: the page of an Xid 31 is what a dump lacks."""

from __future__ import annotations

from collections.abc import Sequence

from crashlab import facts

_MMU_FAULT = 31
_PAGES = (4096, 65536, 2 << 20)
"""Xid 31 prints the address of the faulting page; which page size it was, it does not print."""


def join_xid(report: facts.Report, events: Sequence[facts.XidEvent]) -> facts.Report:
    """The report with its Xid events and, where an Xid 31 page fits, the lanes that hit it."""
    if not events:
        return report
    report = report._replace(xid=tuple(events))
    address = report.verdict.address
    if address is None or address.state != "recovered" or address.space != "global":
        return report
    for event in events:
        if event.code != _MMU_FAULT or event.address is None:
            continue
        joined = _join(address, event.address)
        if joined is not None:
            return report._replace(verdict=report.verdict._replace(address=joined))
    return report


def _join(address: facts.Address, page: int) -> facts.Address | None:
    """The smallest page size that makes some lane's address lie in the page decides."""
    for size in _PAGES:
        hits = [
            i
            for i, lane in enumerate(address.per_lane)
            if lane.address is not None and lane.address // size == page // size
        ]
        if not hits:
            continue
        lanes = tuple(
            lane if lane.address is None else lane._replace(bad=True if i in hits else lane.bad)
            for i, lane in enumerate(address.per_lane)
        )
        note = f"the kernel log's Xid 31 names page {hex(page)}, which holds the address of {len(hits)} of these lanes"
        finding = f"{address.finding}; {note}" if address.finding else note
        return address._replace(per_lane=lanes, finding=finding, value=lanes[hits[0]].address)
    return None
