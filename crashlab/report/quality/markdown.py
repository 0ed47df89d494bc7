"""The quality report as Markdown, for an issue or a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from crashlab.quality.facts import QualityReport
from crashlab.report.markdown.escape import cell, code
from crashlab.report.markdown.escape import prose as text
from crashlab.report.quality import rows


def render(report: QualityReport) -> str:
    """GitHub-flavoured Markdown ending in a newline."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: QualityReport) -> Iterator[str]:
    verdict, suite = report.verdict, report.suite
    asked = f"{report.asked[:1].upper()}{report.asked[1:]}"
    yield f"## {text(verdict.headline)}"
    yield ""
    yield (
        f"{asked} ({text(suite.name)}, sha256 {code(suite.sha256[:16] or '-')}, seed "
        f"{report.seed}), greedy, {report.concurrency} at a time, level {report.alpha:g}. "
        f"{text(f'crashlab {report.tool.version}, {report.created}')}."
    )
    yield ""
    for arm in report.arms:
        what = code(" ".join(arm.argv)) if arm.argv else code(arm.url or "?")
        yield f"- arm {text(arm.name)}: {what}"
    yield ""
    yield "| pass | correct | wrong | invalid | error | right (95 %) | degenerate |"
    yield "|--|--|--|--|--|--|--|"
    for one in rows.passes(report):
        c = one.counts
        yield (
            f"| {text(one.name)} | {c.correct} | {c.wrong} | {c.invalid} | {c.error} | {rows.share(one.share)} "
            f"| {one.odd_answers} of {one.looked_at} |"
        )
    for title, pair in (("A against A", report.floor), ("A against B", report.pair)):
        if pair is not None:
            yield from ("", f"**{title}**: {text('. '.join(rows.comparison(pair)))}.")
    if report.power is not None:
        yield from ("", text(report.power.words))
    yield from _steps(report)
    yield from _examples(report)
    yield from _next(report)
    yield ""
    for words in (*verdict.does_not_mean, *report.notes):
        yield f"- {text(words)}"


def _steps(report: QualityReport) -> Iterator[str]:
    steps = list(rows.cells(report))
    if steps:
        yield from ("", "| easy questions | " + " | ".join(f"arm {text(a.name)}" for a in report.arms) + " |")
        yield "|--" * (1 + len(report.arms)) + "|"
        for name, cells in steps:
            yield f"| {name} | {' | '.join(cells)} |"
    for arm in report.arms:
        for onset in arm.onsets:
            yield from ("", rows.onset(text(arm.name), onset))


def _examples(report: QualityReport) -> Iterator[str]:
    pair = report.pair
    differing = rows.differing(report)
    if pair is not None and differing:
        yield from ("", f"| question | answer | {text(pair.first)} | {text(pair.second)} |", "|--|--|--|--|")
        for one in differing:
            cells = (text(one.question), text(one.answer), code(one.first.text), code(one.second.text))
            yield f"| {' | '.join(map(cell, cells))} |"


def _next(report: QualityReport) -> Iterator[str]:
    if report.signatures:
        yield ""
    for found in report.signatures[:3]:
        fix = f" Fix: {text('; '.join(found.fix[:2]))}." if found.fix else ""
        yield f"- known failure {code(found.id)} ({text(found.status)}): {text(found.title)}.{fix}"
    if report.controls:
        yield from ("", "Arms that would isolate the cause:", "")
    for control in report.controls:
        yield f"- {code(control.change)}: {text(control.tells)}"
