"""JUnit XML: one testcase for each run or dump, for whatever shows test results."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from crashlab import facts
from crashlab.report import text
from crashlab.report.safe import one_line

_FAILED = ("gpu-fault", "device-assert", "trap", "hang", "stall", "garbage", "host-death", "never-ready")


def render(report: facts.Report) -> str:
    """A ``testsuite`` document. Faults are failures, unreadable and inconclusive ones errors."""
    cases = list(_cases(report))
    failures = sum(1 for _, kind, _ in cases if kind in _FAILED)
    errors = sum(1 for _, kind, _ in cases if kind not in (*_FAILED, "no-fault"))
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines.append(
        f'<testsuite name="crashlab" tests="{len(cases)}" failures="{failures}" errors="{errors}" skipped="0" '
        f"timestamp={_attribute(report.created)}>"
    )
    for number, (name, kind, headline) in enumerate(cases):
        lines.append(f"  <testcase classname={_attribute(f'crashlab.{kind}')} name={_attribute(name)}>")
        if kind != "no-fault":
            tag = "failure" if kind in _FAILED else "error"
            body = text.render(report) if number == 0 else one_line(headline)
            lines.append(f"    <{tag} type={_attribute(kind)} message={_attribute(headline)}>")
            lines += [escape(one_line(line), quote=False) for line in body.splitlines()]
            lines.append(f"    </{tag}>")
        lines.append("  </testcase>")
    lines.append("</testsuite>")
    return "\n".join(lines) + "\n"


def _cases(report: facts.Report) -> Iterator[tuple[str, str, str]]:
    """Name, kind and headline: the verdict's dump first, then the other dumps of the crash."""
    verdict = report.verdict
    if report.cases:
        ordered = sorted(report.cases, key=lambda case: case.role != "origin")
        yield from ((case.input, case.kind, case.headline) for case in ordered)
        return
    name = report.inputs[0].path if report.inputs else "run"
    yield name, verdict.kind, verdict.headline


def _attribute(value: str) -> str:
    return f'"{escape(one_line(value))}"'
