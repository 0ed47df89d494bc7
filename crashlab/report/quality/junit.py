"""The quality report as JUnit XML: the verdict, and each arm's errors, as test cases."""

from __future__ import annotations

from collections.abc import Iterator

from crashlab.quality.facts import DEGRADED, GARBAGE, INCONCLUSIVE, QualityReport
from crashlab.report.junitxml import ERROR, FAILURE, Case, suite
from crashlab.report.quality import rows

_TAGS = {GARBAGE: FAILURE, DEGRADED: FAILURE, INCONCLUSIVE: ERROR}
_CLASS = "crashlab.quality"


def render(report: QualityReport) -> str:
    """A ``testsuite`` document. Garbage and degraded are failures, inconclusive and transport errors errors."""
    return suite("crashlab quality", list(_cases(report)), report.created)


def _cases(report: QualityReport) -> Iterator[Case]:
    verdict = report.verdict
    body = [*verdict.reasons, *(rows.comparison(report.pair) if report.pair is not None else ())]
    yield Case(_CLASS, "verdict", _TAGS.get(verdict.kind), verdict.kind, verdict.headline, body)
    for one in rows.passes(report):
        found = rows.errors(one)
        tag = ERROR if found else None
        yield Case(_CLASS, f"pass {one.name}", tag, verdict.kind, found or "", [rows.counts(one.counts)])
