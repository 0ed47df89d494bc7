"""The quality report as one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from crashlab.quality.facts import DEGRADED, GARBAGE, NO_DIFFERENCE, NOTHING_FOUND, Comparison, QualityReport
from crashlab.report.html import assets
from crashlab.report.html.links import Anchor
from crashlab.report.quality import rows
from crashlab.report.quality.pictures import PARTS, arms_picture

_TONES = {GARBAGE: "fault", DEGRADED: "hang", NO_DIFFERENCE: "fine", NOTHING_FOUND: "fine"}
_NUMBERS, _TEXT = "num", "wrap"


class Table(NamedTuple):
    """``name`` is for screen readers; ``css``: of all columns but the first, which names the row."""

    name: str
    heads: Sequence[str]
    rows: Sequence[Sequence[object]]
    css: str


class Pair(NamedTuple):
    """A section about two passes over the same questions."""

    id: str
    title: str
    words: Sequence[str]
    differing: Table


def render(report: QualityReport) -> str:
    """The page. Everything from a server is escaped, and the page's policy lets nothing be loaded."""
    style = assets.source("report.css") + assets.source("quality.css")
    return assets.filled(
        "quality.html.j2", style, page=_page(report), report=report, version=report.tool.version
    )


def _page(report: QualityReport) -> dict[str, Any]:
    passes = rows.passes(report)
    page: dict[str, Any] = {
        "title": f"crashlab quality: {report.verdict.kind}",
        "created": report.created,
        "tone": _TONES.get(report.verdict.kind, "hang"),
        "picture": arms_picture(report),
        "legend": [(words, css) for _, words, css in PARTS],
        "passes": _passes(report),
        "said": [found for one in passes for found in (rows.errors(one), rows.odd(one)) if found],
        "charts": _charts(report),
        "onsets": [rows.onset(arm.name, onset) for arm in report.arms for onset in arm.onsets],
        "pairs": _pairs(report),
        "odd": _odd(report),
        "known": _known(report),
        "controls": _controls(report),
        "asked": _asked(report),
    }
    page["nav"] = _nav(page, report)
    return page


def _nav(page: dict[str, Any], report: QualityReport) -> list[Anchor]:
    links = [Anchor("verdict", "Verdict"), Anchor("arms", "Arms" if len(report.arms) > 1 else "The server")]
    links += [Anchor(pair.id, pair.title) for pair in page["pairs"]]
    sections = (
        ("power", "What it could see", report.power),
        ("odd", "Degenerate answers", page["odd"].rows),
        ("known", "Known failures", page["known"]),
        ("next", "What to run next", page["controls"].rows),
        ("asked", "What was asked", True),
    )
    return links + [Anchor(name, label) for name, label, there in sections if there]


def _passes(report: QualityReport) -> Table:
    heads = ("pass", "correct", "wrong", "invalid", "error", "right (95 %)", "degenerate")
    body = [
        (one.name, one.counts.correct, one.counts.wrong, one.counts.invalid, one.counts.error,
         rows.share(one.share), f"{one.odd_answers} of {one.looked_at}")
        for one in rows.passes(report)
    ]  # fmt: skip
    return Table("Counts of each pass", heads, body, _NUMBERS)


def _charts(report: QualityReport) -> list[tuple[str, Table]]:
    """Right answers by what was asked: (heading, table)."""
    levels = [(name, *cells) for name, cells in rows.levels(report)]
    steps = [(name, *cells) for name, cells in rows.cells(report)]
    passes = [one.name for one in rows.passes(report)]
    arms = [f"arm {arm.name}" for arm in report.arms]
    tables = (
        Table("Right answers by level", ("level", *passes), levels, _NUMBERS),
        Table("The easy questions at other lengths and loads", ("step", *arms), steps, _NUMBERS),
    )
    return [(table.name, table) for table in tables]


def _pairs(report: QualityReport) -> list[Pair]:
    found = []
    if report.floor is not None:
        found.append(_pair("floor", "Arm A against itself", report.floor, report.floor.differing))
    if report.pair is not None:
        found.append(_pair("pair", "Arm A against arm B", report.pair, rows.differing(report)))
    return found


def _pair(name: str, title: str, pair: Comparison, differing: Sequence[Any]) -> Pair:
    body = [(one.question, one.answer, one.first.text, one.second.text) for one in differing]
    heads = ("question", "answer", pair.first, pair.second)
    return Pair(name, title, rows.comparison(pair), Table(f"{title}: different answers", heads, body, _TEXT))


def _odd(report: QualityReport) -> Table:
    body = [
        (one.name, example.task, ", ".join(example.kinds), example.answer)
        for arm in report.arms
        for one in arm.passes[-1:]
        for example in one.examples
    ]
    return Table("Examples of degenerate answers", ("pass", "task", "looks", "answer"), body, _TEXT)


def _known(report: QualityReport) -> list[str]:
    return [
        f"{found.id} ({found.status}, score {found.score:.2f}): {found.title}"
        + (f". Fix: {'; '.join(found.fix[:2])}" if found.fix else "")
        for found in report.signatures
    ]


def _controls(report: QualityReport) -> Table:
    body = [(one.change, one.tells) for one in report.controls]
    return Table("Changes and what they would tell", ("change", "tells"), body, _TEXT)


def _asked(report: QualityReport) -> list[str]:
    suite = report.suite
    return [
        f"{report.asked}: {suite.name}, {suite.shots} examples each, sha256 {suite.sha256 or '-'}",
        f"greedy, {report.concurrency} at a time, over {report.endpoint}; all tests at level {report.alpha:g}",
        *(f"seed of {seed.what}: {seed.seed}" for seed in report.seeds),
        *(f"arm {arm.name}: {' '.join(arm.argv) if arm.argv else arm.url}" for arm in report.arms),
        f"crashlab {report.tool.version}, {report.created}",
        *report.notes,
    ]
