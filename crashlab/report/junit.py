"""The report as JUnit XML: one testcase for each run or dump, for whatever shows test results."""

from __future__ import annotations

from collections.abc import Iterator

from crashlab import facts
from crashlab.report import text
from crashlab.report.junitxml import ERROR, FAILURE, Case, suite
from crashlab.report.safe import one_line

_FAILED = ("gpu-fault", "device-assert", "trap", "hang", "stall", "garbage", "host-death", "never-ready")


def render(report: facts.Report) -> str:
    """A ``testsuite`` document. Faults are failures, unreadable and inconclusive ones errors."""
    return suite("crashlab", list(_cases(report)), report.created)


def _cases(report: facts.Report) -> Iterator[Case]:
    for number, (name, kind, headline) in enumerate(_kinds(report)):
        if kind == "no-fault":
            yield Case(f"crashlab.{kind}", name)
            continue
        body = text.render(report) if number == 0 else one_line(headline)
        tag = FAILURE if kind in _FAILED else ERROR
        yield Case(f"crashlab.{kind}", name, tag, kind, headline, body.splitlines())


def _kinds(report: facts.Report) -> Iterator[tuple[str, str, str]]:
    """Name, kind and headline: the verdict's dump first, then the other dumps of the crash."""
    verdict = report.verdict
    if report.cases:
        ordered = sorted(report.cases, key=lambda case: case.role != "origin")
        yield from ((case.input, case.kind, case.headline) for case in ordered)
        return
    name = report.inputs[0].path if report.inputs else "run"
    yield name, verdict.kind, verdict.headline
