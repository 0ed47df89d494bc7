"""The kernel log's Xid lines joined with the verdict: the page of an Xid 31 is what a dump lacks."""

from __future__ import annotations

from collections.abc import Sequence

from crashlab import facts
from crashlab.logs.hardware import CrashedProcess, hardware_suspect, with_relevance
from crashlab.logs.xid import XidDetail

NOBODY = CrashedProcess()

_MMU_FAULT = 31
_OWN, _OTHERS = 128, 32
"""Xid events that a report lists: surely or perhaps the crash's, each, and others'."""
_PAGES = (4096, 65536, 2 << 20)
"""Xid 31 prints the address of the faulting page; which page size it was, it does not print."""


def join_xid(
    report: facts.Report, xids: Sequence[XidDetail], process: CrashedProcess = NOBODY
) -> facts.Report:
    """The report with its Xid events, what they say about the hardware, and an Xid 31's page.

    Events that are certainly another crash's are listed and not used.
    """
    if not xids:
        return report
    xids = with_relevance(xids, process)
    report = _with_events(report, [one.event for one in xids])
    ours = [one for one in xids if one.event.relevant is not False]
    verdict = _with_page(report.verdict, [one.event for one in ours])
    judged = hardware_suspect(ours)
    if judged.suspect:
        why = " ".join(judged.reasons)
        caution = f"It does not mean that software is to blame: the kernel log speaks of the hardware. {why}"
        verdict = verdict._replace(does_not_mean=(*verdict.does_not_mean, caution))
    return report._replace(verdict=verdict)


def _with_events(report: facts.Report, events: list[facts.XidEvent]) -> facts.Report:
    """The events in their order, as many as a reader may look at: a busy machine logs thousands of others'."""
    left = {False: _OTHERS, None: _OWN, True: _OWN}
    kept = []
    for event in events:
        left[event.relevant] -= 1
        if left[event.relevant] >= 0:
            kept.append(event)
    report = report._replace(xid=tuple(kept))
    if len(kept) == len(events):
        return report
    note = f"The kernel log has {len(events)} Xid lines; {len(kept)} of them are listed."
    return report._replace(provenance=(*report.provenance, note))


def _with_page(verdict: facts.Verdict, events: Sequence[facts.XidEvent]) -> facts.Verdict:
    address = verdict.address
    if address is None or address.state != "recovered" or address.space != "global":
        return verdict
    for event in events:
        if event.code != _MMU_FAULT or event.address is None:
            continue
        joined = _join(address, event.address)
        if joined is not None:
            return verdict._replace(address=joined)
    return verdict


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
