"""The quality report as JUnit XML: the verdict, and each arm's errors, as test cases."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from crashlab.quality.facts import DEGRADED, GARBAGE, INCONCLUSIVE, QualityReport
from crashlab.report.quality import rows
from crashlab.report.safe import one_line


def render(report: QualityReport) -> str:
    """A ``testsuite`` document. Garbage and degraded are failures, inconclusive and transport errors errors."""
    cases = list(_cases(report))
    failures = sum(tag == "failure" for _, tag, _, _ in cases)
    errors = sum(tag == "error" for _, tag, _, _ in cases)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines.append(
        f'<testsuite name="crashlab quality" tests="{len(cases)}" failures="{failures}" errors="{errors}" '
        f'skipped="0" timestamp={_attribute(report.created)}>'
    )
    for name, tag, message, body in cases:
        lines.append(f'  <testcase classname="crashlab.quality" name={_attribute(name)}>')
        if tag is not None:
            kind = _attribute(report.verdict.kind)
            lines.append(f"    <{tag} type={kind} message={_attribute(message)}>")
            lines += [escape(one_line(line), quote=False) for line in body]
            lines.append(f"    </{tag}>")
        lines.append("  </testcase>")
    lines.append("</testsuite>")
    return "\n".join(lines) + "\n"


def _cases(report: QualityReport) -> Iterator[tuple[str, str | None, str, list[str]]]:
    """Name, tag (None: passed), message, body."""
    verdict = report.verdict
    tags = {GARBAGE: "failure", DEGRADED: "failure", INCONCLUSIVE: "error"}
    body = [*verdict.reasons, *(rows.comparison(report.pair) if report.pair is not None else ())]
    yield "verdict", tags.get(verdict.kind), verdict.headline, body
    for one in rows.passes(report):
        found = rows.errors(one)
        yield f"pass {one.name}", "error" if found else None, found or "", [rows.counts(one.counts)]


def _attribute(value: str) -> str:
    return f'"{escape(one_line(value))}"'
