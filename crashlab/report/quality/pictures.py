"""A small picture of both arms: what became of every question, a bar a pass, on one scale."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from crashlab.quality.facts import PassFacts, QualityReport
from crashlab.report.html import svg
from crashlab.report.quality import rows

PARTS = (
    ("correct", "right", "ok"),
    ("wrong", "wrong", "wrong"),
    ("invalid", "no parsable answer", "invalid"),
    ("error", "error of transport, not a wrong answer", "error"),
)
_ROW, _BAR, _LEFT = 34.0, 16.0, 0.06
_WIDTH = 0.92


def arms_picture(report: QualityReport) -> Markup | None:
    """Bars of all passes; a whisker shows the exact 95 % limits of the share of right answers. None
    if nothing was asked."""
    passes = [one for one in rows.passes(report) if one.counts.asked]
    if not passes:
        return None
    parts = [piece for i, one in enumerate(passes) for piece in _bar(one, 4.0 + i * _ROW)]
    label = "; ".join(f"{one.name}: {rows.counts(one.counts)}" for one in passes)
    return svg.picture(_ROW * len(passes) + 6, label, *parts, class_="pic arms")


def _bar(one: PassFacts, top: float) -> Iterator[Markup]:
    yield svg.text("0%", top + _BAR - 4, one.name, "strong")
    at = 0
    total = one.counts.asked
    for name, words, class_ in PARTS:
        number = getattr(one.counts, name)
        if number:
            tip = f"{one.name}: {number} of {total}, {words}"
            yield svg.rect(_x(at / total), top, svg.percent(_WIDTH * number / total), _BAR, class_, tip)
        at += number
    if one.share.of:
        scale = one.counts.answered / total
        low, high = one.share.low * scale, one.share.high * scale
        middle = top + _BAR + 5
        yield svg.line(_x(low), middle, _x(high), middle, "whisker")
        for end in (low, high):
            yield svg.line(_x(end), middle - 3, _x(end), middle + 3, "whisker")


def _x(fraction: float) -> str:
    return svg.percent(_LEFT + _WIDTH * fraction)
