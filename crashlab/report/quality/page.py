"""The quality report as one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from markupsafe import Markup, escape

from crashlab.quality.facts import DEGRADED, GARBAGE, NO_DIFFERENCE, NOTHING_FOUND, QualityReport
from crashlab.report.html import assets
from crashlab.report.html.svg import element
from crashlab.report.quality import rows
from crashlab.report.quality.pictures import PARTS, arms_picture
from crashlab.report.safe import one_line

_STYLE = (
    ".wrong { fill: var(--bad); } .invalid { fill: var(--warn); } .error { fill: var(--off); } "
    ".whisker { stroke: var(--ink); stroke-width: 1.5; } .key .wrong, .key .invalid, .key .error { stroke: none; } "
    "td.num, th.num { text-align: right; } main { max-width: 78rem; margin: 1rem auto; padding: 0 1.25rem; }"
)
_TONES = {GARBAGE: "fault", DEGRADED: "hang", NO_DIFFERENCE: "fine", NOTHING_FOUND: "fine"}


def render(report: QualityReport) -> str:
    """The page. Everything from a server is escaped, and the page's policy lets nothing be loaded."""
    style = assets.source("report.css") + _STYLE
    head = element(
        "head",
        Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta http-equiv="Content-Security-Policy" content="{}">').format(assets.policy(style, "")),
        element("title", one_line(f"crashlab quality: {report.verdict.kind}")),
        # our own file and the text above: the policy's hash is of exactly these bytes
        Markup("<style>") + Markup(style) + Markup("</style>"),
    )
    body = element("body", element("main", *_sections(report)))
    return f'<!doctype html>\n<html lang="en">{head}{body}</html>\n'


def _sections(report: QualityReport) -> Iterator[Markup]:
    verdict = report.verdict
    tone = _TONES.get(verdict.kind, "hang")
    yield element(
        "section",
        element("p", element("span", verdict.kind, class_="pill tone"), class_="pills"),
        element("h1", one_line(verdict.headline), class_="headline"),
        _list(verdict.reasons),
        element(
            "div",
            element("h2", "It does not mean", class_="sub"),
            _list(verdict.does_not_mean),
            class_="caveats",
        )
        if verdict.does_not_mean
        else Markup(""),
        class_=f"verdict kind-{tone}",
    )
    yield _arms(report)
    yield from _differences(report)
    yield from _next(report)
    yield _asked(report)


def _arms(report: QualityReport) -> Markup:
    picture = arms_picture(report)
    figure = Markup("")
    if picture is not None:
        legend = [
            element("span", Markup('<svg class="swatch" width="12" height="12"><rect width="12" height="12" '
                                   'class="{}"/></svg>').format(class_), words, class_="key")
            for _, words, class_ in PARTS
        ]  # fmt: skip
        caption = "What became of each question; the whisker is the exact 95 % interval of right answers."
        figure = element(
            "figure", picture, element("figcaption", element("span", *legend, class_="legend"), caption)
        )
    heads = ("pass", "correct", "wrong", "invalid", "error", "right (95 %)", "degenerate")
    body = [
        (one.name, one.counts.correct, one.counts.wrong, one.counts.invalid, one.counts.error,
         rows.share(one.share), f"{one.odd_answers} of {one.looked_at}")
        for one in rows.passes(report)
    ]  # fmt: skip
    said = [found for one in rows.passes(report) for found in (rows.errors(one), rows.odd(one)) if found]
    names = [one.name for one in rows.passes(report)]
    levels = [(name, *cells) for name, cells in rows.levels(report)]
    steps = [(name, *cells) for name, cells in rows.cells(report)]
    onsets = [rows.onset(arm.name, onset) for arm in report.arms for onset in arm.onsets]
    return element(
        "section",
        element("h2", "Both arms" if len(report.arms) > 1 else "The server"),
        figure,
        _table(heads, body),
        _list(said),
        element("h3", "Right answers by level") if levels else Markup(""),
        _table(("level", *names), levels),
        element("h3", "The easy questions at other lengths and loads") if steps else Markup(""),
        _table(("step", *(f"arm {arm.name}" for arm in report.arms)), steps),
        _list(onsets),
    )


def _differences(report: QualityReport) -> Iterator[Markup]:
    for title, pair in (("Arm A against itself", report.floor), ("Arm A against arm B", report.pair)):
        if pair is None:
            continue
        shown = rows.differing(report) if pair is report.pair else pair.differing
        body = [(one.question, one.answer, one.first.text, one.second.text) for one in shown]
        yield element(
            "section",
            element("h2", title),
            _list(rows.comparison(pair)),
            _table(("question", "answer", pair.first, pair.second), body),
        )
    if report.power is not None:
        yield element("section", element("h2", "What this run could see"), element("p", report.power.words))
    odd = [
        (one.name, example.task, ", ".join(example.kinds), example.answer)
        for arm in report.arms
        for one in arm.passes[-1:]
        for example in one.examples
    ]
    if odd:
        table = _table(("pass", "task", "looks", "answer"), odd)
        yield element("section", element("h2", "Degenerate answers"), table)


def _next(report: QualityReport) -> Iterator[Markup]:
    if report.signatures:
        items = [
            f"{found.id} ({found.status}, score {found.score:.2f}): {found.title}"
            + (f". Fix: {'; '.join(found.fix[:2])}" if found.fix else "")
            for found in report.signatures
        ]
        yield element("section", element("h2", "Known failures that fit"), _list(items))
    if report.controls:
        body = [(one.change, one.tells) for one in report.controls]
        yield element(
            "section", element("h2", "Arms that would isolate the cause"), _table(("change", "tells"), body)
        )


def _asked(report: QualityReport) -> Markup:
    suite = report.suite
    items = [
        f"{suite.questions} questions: {suite.name}, {suite.shots} examples each, sha256 {suite.sha256 or '-'}",
        f"greedy, {report.concurrency} at a time, over {report.endpoint}; all tests at level {report.alpha:g}",
        *(f"seed of {seed.what}: {seed.seed}" for seed in report.seeds),
        *(f"arm {arm.name}: {' '.join(arm.argv) if arm.argv else arm.url}" for arm in report.arms),
        f"crashlab {report.tool.version}, {report.created}",
        *report.notes,
    ]
    return element("section", element("h2", "What was asked"), _list(items))


def _list(items: Iterable[str]) -> Markup:
    rendered = [element("li", one_line(item)) for item in items]
    return element("ul", *rendered) if rendered else Markup("")


def _table(heads: Sequence[str], body: Sequence[Sequence[object]]) -> Markup:
    if not body:
        return Markup("")
    top = element("tr", *(element("th", one_line(head)) for head in heads))
    lines = [element("tr", *(element("td", escape(one_line(str(cell)))) for cell in row)) for row in body]
    return element("div", element("table", element("thead", top), element("tbody", *lines)), class_="scroll")
