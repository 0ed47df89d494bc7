"""The quality report for a terminal: the verdict, what each arm did, what differs, what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from crashlab.quality.facts import QualityReport
from crashlab.report.columns import Columns
from crashlab.report.quality import rows
from crashlab.report.safe import one_line
from crashlab.report.text import WIDTH, Paragraph, Piece, page

_LABEL = 13


def render(
    report: QualityReport, *, verbose: bool = False, words: bool = True, width: int | None = None
) -> str:
    """Text ending in a newline; ``verbose`` adds levels, more examples and all control arms. Without
    ``words`` no question and no answer is quoted. ``width``: columns, 110 if not given."""
    pieces = list(_pieces(report, verbose, words))
    kept = [piece for i, piece in enumerate(pieces) if piece or i == 0 or pieces[i - 1]]
    return page(kept, width or WIDTH)


def _pieces(report: QualityReport, verbose: bool, words: bool) -> Iterator[Piece]:
    yield Paragraph(one_line(report.verdict.headline))
    yield ""
    yield from _asked(report)
    yield from _counted(report, verbose)
    yield from _compared(report, verbose)
    if words:
        yield from _differing(report, verbose)
        yield from _odd_examples(report, verbose)
    yield from _known(report)
    for control in report.controls[: None if verbose else 4]:
        yield _field("next arm", f"{control.change}: {control.tells}")
    yield from (_field("but", sentence) for sentence in report.verdict.does_not_mean)
    yield from (_field("note", note) for note in report.notes)


def _asked(report: QualityReport) -> Iterator[Piece]:
    suite = report.suite
    digest = f", sha256 {suite.sha256[:12]}" if suite.sha256 else ""
    words = (
        f"{report.asked} ({suite.name}), {suite.shots} examples each, seed {report.seed}, greedy, "
        f"{report.concurrency} at a time; all tests together at level {report.alpha:g}{digest}"
    )
    yield _field("asked", words)
    for arm in report.arms:
        what = " ".join(arm.argv) if arm.argv else (arm.url or "?")
        model = f" (model {arm.model})" if arm.model else ""
        yield _field(f"arm {arm.name}", f"{what}{model}")


def _counted(report: QualityReport, verbose: bool) -> Iterator[Piece]:
    for one in rows.passes(report):
        yield _field(f"pass {one.name}", f"{rows.counts(one.counts)}; right {rows.share(one.share)}")
        if one.strict_share is not None and (verbose or one.counts.strict != one.counts.correct):
            yield _field("", f"in the exact form of the examples: {rows.share(one.strict_share)}")
        for found in (rows.errors(one), rows.odd(one)):
            if found is not None:
                yield _field("", found.partition(": ")[2])


def _compared(report: QualityReport, verbose: bool) -> Iterator[Piece]:
    if report.floor is not None:
        yield from _several("A against A", rows.comparison(report.floor)[: None if verbose else 1])
    if report.pair is not None:
        yield from _several("A against B", rows.comparison(report.pair))
    if report.power is not None:
        yield _field("could see", report.power.words)
    if verbose:
        passes = [one.name for one in rows.passes(report)]
        yield from _table("right by level", list(rows.levels(report)), passes)
    if verbose or report.verdict.worse_arm is not None:
        arms = [f"arm {arm.name}" for arm in report.arms]
        yield from _table("easy questions", list(rows.cells(report)), arms)
    for arm in report.arms:
        yield from (_field("begins", rows.onset(arm.name, onset)) for onset in arm.onsets)


def _differing(report: QualityReport, verbose: bool) -> Iterator[Piece]:
    pair = report.pair
    if pair is None or (report.verdict.worse_arm is None and not verbose):
        return
    for one in rows.differing(report)[: None if verbose else 2]:
        words = (
            f"{one.task}: {one.question!r} is {one.answer!r}; {pair.first} said {one.first.text!r}, "
            f"{pair.second} said {one.second.text!r}"
        )
        yield _field("for example", words)


def _odd_examples(report: QualityReport, verbose: bool) -> Iterator[Piece]:
    if report.verdict.worse_arm is None and not verbose:
        return
    for arm in report.arms:
        for one in arm.passes[-1:]:
            for example in one.examples[: None if verbose else 1]:
                kinds = ", ".join(example.kinds)
                yield _field("for example", f"{one.name} {example.task} ({kinds}): {example.answer!r}")


def _known(report: QualityReport) -> Iterator[Piece]:
    for found in report.signatures[:3]:
        yield _field("known", f"{found.id} ({found.status}): {found.title}")
        for fix in found.fix[:2]:
            yield _field("", f"fix: {fix}")


def _table(title: str, body: Sequence[tuple[str, list[str]]], heads: Sequence[str]) -> Iterator[Piece]:
    if body:
        right = [False, *(True for _ in heads)]
        words = [not to_right for to_right in right]
        yield ""
        yield Columns((title, *heads), [(one_line(name, 60), *row) for name, row in body], right, words)
        yield ""


def _several(label: str, sentences: Sequence[str]) -> Iterator[Piece]:
    for number, sentence in enumerate(sentences):
        yield _field(label if number == 0 else "", sentence)


def _field(label: str, text: str) -> Paragraph:
    return Paragraph(one_line(text), label.ljust(_LABEL), " " * _LABEL)
