"""The quality report for a terminal: the verdict, what each arm did, what differs, what to do next."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from crashlab.quality.facts import QualityReport
from crashlab.report.quality import rows
from crashlab.report.safe import one_line

_WIDTH = 110
_LABEL = 13


def render(report: QualityReport, *, verbose: bool = False, words: bool = True) -> str:
    """Text ending in a newline; ``verbose`` adds levels, more examples and all control arms. Without
    ``words`` no question and no answer is quoted."""
    lines = list(_wrap(report.verdict.headline, ""))
    lines.append("")
    lines += _asked(report)
    for one in rows.passes(report):
        lines += _field(f"pass {one.name}", f"{rows.counts(one.counts)}; right {rows.share(one.share)}")
        if one.strict_share is not None and (verbose or one.counts.strict != one.counts.correct):
            lines += _field("", f"in the exact form of the examples: {rows.share(one.strict_share)}")
        for found in (rows.errors(one), rows.odd(one)):
            if found is not None:
                lines += _field("", found.partition(": ")[2])
    if report.floor is not None:
        lines += _several("A against A", rows.comparison(report.floor)[: None if verbose else 1])
    if report.pair is not None:
        lines += _several("A against B", rows.comparison(report.pair))
    if report.power is not None:
        lines += _field("could see", report.power.words)
    if verbose:
        lines += _table("right by level", list(rows.levels(report)), [p.name for p in rows.passes(report)])
    steps = list(rows.cells(report))
    if steps and (verbose or report.verdict.worse_arm is not None):
        lines += _table("easy questions", steps, [f"arm {arm.name}" for arm in report.arms])
    for arm in report.arms:
        for onset in arm.onsets:
            lines += _field("begins", rows.onset(arm.name, onset))
    if words:
        lines += _differing(report, verbose)
        lines += _odd_examples(report, verbose)
    lines += _known(report)
    for control in report.controls[: None if verbose else 4]:
        lines += _field("next arm", f"{control.change}: {control.tells}")
    for sentence in report.verdict.does_not_mean:
        lines += _field("but", sentence)
    for note in report.notes:
        lines += _field("note", note)
    kept = [line for i, line in enumerate(lines) if line or i == 0 or lines[i - 1]]
    return "\n".join(kept) + "\n"


def _asked(report: QualityReport) -> list[str]:
    suite = report.suite
    digest = f", sha256 {suite.sha256[:12]}" if suite.sha256 else ""
    words = (
        f"{suite.questions} questions ({suite.name}), {suite.shots} examples each, seed {report.seed}, greedy, "
        f"{report.concurrency} at a time; all tests together at level {report.alpha:g}{digest}"
    )
    lines = _field("asked", words)
    for arm in report.arms:
        what = " ".join(arm.argv) if arm.argv else (arm.url or "?")
        model = f" (model {arm.model})" if arm.model else ""
        lines += _field(f"arm {arm.name}", f"{what}{model}")
    return lines


def _differing(report: QualityReport, verbose: bool) -> Iterator[str]:
    pair = report.pair
    if pair is None or (report.verdict.worse_arm is None and not verbose):
        return
    for one in rows.differing(report)[: None if verbose else 2]:
        words = (
            f"{one.task}: {one.question!r} is {one.answer!r}; {pair.first} said {one.first.text!r}, "
            f"{pair.second} said {one.second.text!r}"
        )
        yield from _field("for example", words)


def _odd_examples(report: QualityReport, verbose: bool) -> Iterator[str]:
    if report.verdict.worse_arm is None and not verbose:
        return
    for arm in report.arms:
        for one in arm.passes[-1:]:
            for example in one.examples[: None if verbose else 1]:
                kinds = ", ".join(example.kinds)
                yield from _field("for example", f"{one.name} {example.task} ({kinds}): {example.answer!r}")


def _known(report: QualityReport) -> Iterator[str]:
    for found in report.signatures[:3]:
        yield from _field("known", f"{found.id} ({found.status}): {found.title}")
        for fix in found.fix[:2]:
            yield from _field("", f"fix: {fix}")


def _table(title: str, body: Sequence[tuple[str, list[str]]], heads: Sequence[str]) -> Iterator[str]:
    if not body:
        return
    body = [(one_line(name, 60), row) for name, row in body]
    first = max(len(title), *(len(name) for name, _ in body))
    widths = [max(len(head), *(len(row[i]) for _, row in body)) for i, head in enumerate(heads)]
    yield ""
    yield "  ".join([title.ljust(first), *(head.rjust(w) for head, w in zip(heads, widths, strict=True))])
    for name, row in body:
        yield "  ".join([name.ljust(first), *(cell.rjust(w) for cell, w in zip(row, widths, strict=True))])
    yield ""


def _several(label: str, sentences: Sequence[str]) -> Iterator[str]:
    for number, sentence in enumerate(sentences):
        yield from _field(label if number == 0 else "", sentence)


def _field(label: str, text: str) -> list[str]:
    return list(_wrap(text, label.ljust(_LABEL)))


def _wrap(text: str, label: str) -> Iterator[str]:
    indent = " " * (len(label) if label else 0)
    yield from textwrap.wrap(
        one_line(text), _WIDTH, initial_indent=label, subsequent_indent=indent, break_on_hyphens=False
    ) or [label.rstrip()]
