"""JUnit XML of a sweep: one testcase a run, one for each arm that was not run."""

from __future__ import annotations

from collections.abc import Iterator

from crashlab.report.junitxml import ERROR, FAILURE, SKIPPED, Case, suite
from crashlab.report.sweep import rows, text
from crashlab.sweep import facts
from crashlab.sweep.verdict.tally import event_key

_ERRORS = (facts.NEVER_READY, facts.HOST_DEATH)


def render(result: facts.SweepResult) -> str:
    """Events are failures, servers that never came up or were killed errors, what cannot count is skipped."""
    return suite(
        "crashlab.sweep",
        list(_cases(result)),
        result.created,
        properties=rows.about(result),
        output=text.render(result).splitlines(),
        compact=True,
    )


def _cases(result: facts.SweepResult) -> Iterator[Case]:
    for run in result.runs:
        hours = run.exposure.hours
        tag = _tag(run.outcome)
        yield Case(
            f"crashlab.sweep.{run.arm}",
            f"{run.arm} run {run.number}",
            tag,
            None if tag == SKIPPED else run.outcome,
            _message(run),
            seconds=None if hours is None else hours * 3600,
        )
    ran = {run.arm for run in result.runs}
    for arm in result.arms:
        if arm.name not in ran:
            why = "this arm was not run"
            yield Case(f"crashlab.sweep.{arm.name}", f"{arm.name} not run", SKIPPED, message=why)


def _tag(outcome: str) -> str | None:
    if outcome in facts.EVENTS:
        return FAILURE
    if outcome in _ERRORS:
        return ERROR
    return None if outcome == facts.CLEAN else SKIPPED


def _message(run: facts.ArmRun) -> str:
    parts = [run.outcome, event_key(run) or "", "at start-up" if run.at_startup else "", run.note or ""]
    return ": ".join(part for part in parts if part)
