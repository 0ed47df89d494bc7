"""The verdict of questions that a run directory recorded, told by its post-mortem as well."""

from __future__ import annotations

from collections.abc import Iterable

from crashlab import facts
from crashlab.quality.facts import DEGRADED, GARBAGE
from crashlab.rundir.reader import Event

EVENT = "quality-verdict"
_OPEN = ("no-fault", "inconclusive")


def settle_recorded(report: facts.Report, events: Iterable[Event]) -> facts.Report:
    """The report with what exact questions showed; unchanged where none were asked.

    A fault, a stall or a death outranks wrong answers; then they are a note.
    """
    found = [(event.text("verdict"), event.text("headline")) for event in events if event.kind == EVENT]
    kind, headline = found[-1] if found else (None, None)
    if kind is None or headline is None:
        return report
    if kind not in (GARBAGE, DEGRADED) or report.verdict.kind not in _OPEN:
        return report._replace(provenance=(*report.provenance, f"Exact questions were asked: {headline}"))
    verdict = report.verdict._replace(
        kind="garbage",
        headline=headline,
        confidence=facts.Confidence("high", ("exact questions were asked and counted: see quality.json",)),
        does_not_mean=(
            "It does not name the cause: 'crashlab report' on quality.json lists the control arms.",
        ),
    )
    return report._replace(verdict=verdict)
