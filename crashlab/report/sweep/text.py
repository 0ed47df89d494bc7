"""A sweep on the terminal: the headline, the arms, what may be said of each, what to run next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crashlab.report.columns import Columns
from crashlab.report.safe import one_line
from crashlab.report.sweep import rows
from crashlab.report.text import WIDTH, Paragraph, Piece, page
from crashlab.sweep import facts

_LABEL = 13
_NAME = 28
_CELL = 60
_ARMS = 40
_EFFECTS = 12


def render(result: facts.SweepResult, *, width: int | None = None) -> str:
    """The text form; ``width`` columns."""
    return page(_lines(result), width or WIDTH)


def _lines(result: facts.SweepResult) -> Iterator[Piece]:
    findings = result.findings
    if findings is not None:
        yield Paragraph(one_line(findings.headline))
        yield ""
    for label, value in rows.about(result):
        yield from _row(label.lower(), value)
    yield ""
    yield from _arms(rows.arm_rows(result))
    if findings is None:
        return
    for entry in findings.keys:
        yield ""
        yield from _key(entry)
    if findings.next_steps:
        yield ""
        for step in findings.next_steps:
            yield from _row("next", step.words)
    yield ""
    for aside in findings.asides:
        yield from _row("apart", aside)
    for caveat in findings.caveats:
        yield from _row("but", caveat)


def _row(label: str, value: str) -> Iterator[Paragraph]:
    name = one_line(label, 40)
    yield Paragraph(one_line(value), f"{name:<{_LABEL}}" + ("" if len(name) < _LABEL else " "), " " * _LABEL)


def _arms(arms: Sequence[rows.ArmRow]) -> Iterator[Piece]:
    shown = arms[:_ARMS]
    yield from _table(
        ("arm", "runs", "outcomes", "exposure"),
        [(rows.label(arm.name, arm.baseline), str(arm.runs), arm.outcomes, arm.exposure) for arm in shown],
    )
    if len(arms) > len(shown):
        yield f"  … and {len(arms) - len(shown)} more arms (the other formats list them)"
    yield ""
    yield from _table(
        ("arm", "lever", "requested", "effective", "seen"),
        [
            (arm.name, item.lever, item.requested, item.effective, item.took)
            for arm in shown
            for item in arm.config
        ][:_ARMS],
    )


def _key(entry: facts.KeyFindings) -> Iterator[Piece]:
    yield Paragraph(one_line(entry.key), "key          ", " " * _LABEL)
    yield from _table(
        ("arm", "events", "exposure", "rate", "95 % limits"),
        [tuple(row) for row in rows.count_rows(entry)[:_ARMS]],
    )
    for item in entry.comparisons[:_ARMS]:
        if item.reading != "described":
            yield from _row("arm", f"{item.arm}: {item.words}")
    for effect in entry.effects[:_EFFECTS]:
        yield from _row("lever", effect.words)
    if len(entry.effects) > _EFFECTS:
        yield from _row("lever", f"{len(entry.effects) - _EFFECTS} more, none of them nearer to evidence")
    if entry.course is not None:
        yield from _row("course", entry.course.words)


def _table(heads: Sequence[str], body: Sequence[Sequence[str]]) -> Iterator[Piece]:
    """Each cell bounded and harmless; nothing without a row."""
    if body:
        rows = [[one_line(cell, _CELL) for cell in row] for row in body]
        yield Columns(heads, rows, [False] * len(heads), [True] * len(heads), "  ")
