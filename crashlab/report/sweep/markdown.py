"""A sweep as Markdown: for an issue or a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crashlab.report.markdown.escape import bullets, cell, code, prose
from crashlab.report.sweep import rows
from crashlab.sweep import facts

_ROWS = 100
_CELL = 120
_SENTENCE = 3000


def render(result: facts.SweepResult) -> str:
    """Headline, arms, findings key by key, what to run next, caveats. Redact before publishing."""
    return "\n\n".join(_blocks(result)) + "\n"


def _blocks(result: facts.SweepResult) -> Iterator[str]:
    findings = result.findings
    yield "## Sweep"
    if findings is not None:
        yield f"**Finding:** {prose(findings.headline)}"
    yield "\n".join(f"- {label}: {_value(value)}" for label, value in _about(result))
    arms = rows.arm_rows(result)
    yield "### Arms"
    yield _table(
        ("Arm", "Runs", "Outcomes", "Exposure"),
        [
            (
                _cell(rows.label(a.name, a.baseline)),
                str(a.runs),
                _cell(a.outcomes),
                a.exposure,
            )
            for a in arms
        ],
    )
    config = [
        (
            _cell(arm.name),
            _cell(c.lever),
            _cell(c.requested),
            _cell(c.effective),
            c.took,
            _cell(c.source or "–"),
        )
        for arm in arms
        for c in arm.config
    ]
    if config:
        yield "### Requested and effective configuration"
        yield _table(("Arm", "Lever", "Requested", "Effective", "Seen", "Where"), config)
    if findings is None:
        return
    for entry in findings.keys:
        yield from _key(entry)
    if findings.next_steps:
        yield "### What to run next"
        yield bullets(step.words for step in findings.next_steps)
    if findings.asides:
        yield "### Counted apart"
        yield bullets(findings.asides)
    yield "### What this does not mean"
    yield bullets(findings.caveats)


def _about(result: facts.SweepResult) -> list[tuple[str, str]]:
    return [(prose(label), value) for label, value in rows.about(result)]


def _key(entry: facts.KeyFindings) -> Iterator[str]:
    yield f"### Key {code(entry.key, _CELL)}"
    yield _table(
        ("Arm", "Events", "Exposure", "Rate", "95 % limits"),
        [(_cell(row.arm), *row[1:]) for row in rows.count_rows(entry)],
    )
    compared = [item for item in entry.comparisons if item.reading != "described"]
    if compared:
        yield "\n".join(f"- {code(c.arm, _CELL)}: {prose(c.words, _SENTENCE)}" for c in compared[:_ROWS])
    if entry.effects:
        yield "Levers, the most telling first:"
        yield "\n".join(f"- {prose(effect.words, _SENTENCE)}" for effect in entry.effects[:_ROWS])
    if entry.course is not None:
        yield f"Course: {prose(entry.course.words, _SENTENCE)}"


def _value(text: str) -> str:
    return prose(text, _SENTENCE)


def _cell(text: str) -> str:
    return cell(code(text, _CELL))


def _table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'--|' * len(head)}"]
    lines += [f"| {' | '.join(row)} |" for row in body[:_ROWS]]
    if len(body) > _ROWS:
        lines.append(f"\n{len(body) - _ROWS} more rows are in the JSON.")
    return "\n".join(lines)
