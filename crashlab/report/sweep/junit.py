"""JUnit XML of a sweep: one testcase a run, one for each arm that was not run."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import NamedTuple

from crashlab.report.safe import one_line
from crashlab.report.sweep import rows, text
from crashlab.sweep import facts
from crashlab.sweep.verdict.tally import event_key

_ERRORS = (facts.NEVER_READY, facts.HOST_DEATH)


class _Case(NamedTuple):
    arm: str
    name: str
    seconds: float | None
    tag: str | None
    kind: str
    message: str


def render(result: facts.SweepResult) -> str:
    """Events are failures, servers that never came up or were killed errors, what cannot count is skipped."""
    cases = list(_cases(result))
    number = {tag: sum(1 for case in cases if case.tag == tag) for tag in ("failure", "error", "skipped")}
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    when = f" timestamp={_attribute(result.created)}" if result.created else ""
    lines.append(
        f'<testsuite name="crashlab.sweep" tests="{len(cases)}" failures="{number["failure"]}" '
        f'errors="{number["error"]}" skipped="{number["skipped"]}"{when}>'
    )
    lines.append("  <properties>")
    for label, value in rows.about(result):
        lines.append(f"    <property name={_attribute(label)} value={_attribute(value)}/>")
    lines.append("  </properties>")
    for case in cases:
        lines += _case(case)
    lines.append("  <system-out>")
    lines += [_text(line) for line in text.render(result).splitlines()]
    lines += ["  </system-out>", "</testsuite>"]
    return "\n".join(lines) + "\n"


def _cases(result: facts.SweepResult) -> Iterator[_Case]:
    for run in result.runs:
        hours = run.exposure.hours
        seconds = None if hours is None else hours * 3600
        name = f"{run.arm} run {run.number}"
        yield _Case(run.arm, name, seconds, _tag(run.outcome), run.outcome, _message(run))
    ran = {run.arm for run in result.runs}
    for arm in result.arms:
        if arm.name not in ran:
            yield _Case(arm.name, f"{arm.name} not run", None, "skipped", "not-run", "this arm was not run")


def _tag(outcome: str) -> str | None:
    if outcome in facts.EVENTS:
        return "failure"
    if outcome in _ERRORS:
        return "error"
    return None if outcome == facts.CLEAN else "skipped"


def _message(run: facts.ArmRun) -> str:
    parts = [run.outcome, event_key(run) or "", "at start-up" if run.at_startup else "", run.note or ""]
    return ": ".join(part for part in parts if part)


def _case(case: _Case) -> Iterator[str]:
    time = f' time="{case.seconds:.3f}"' if case.seconds is not None else ""
    head = (
        f"  <testcase classname={_attribute(f'crashlab.sweep.{case.arm}')} name={_attribute(case.name)}{time}"
    )
    if case.tag is None:
        yield f"{head}/>"
        return
    yield f"{head}>"
    kind = "" if case.tag == "skipped" else f" type={_attribute(case.kind)}"
    yield f"    <{case.tag}{kind} message={_attribute(case.message)}/>"
    yield "  </testcase>"


def _attribute(value: str) -> str:
    return f'"{escape(one_line(value))}"'


def _text(value: str) -> str:
    return escape(one_line(value), quote=False)
