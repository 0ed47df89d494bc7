"""Rates with their limits, and survival curves, as SVG that stretches with the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from markupsafe import Markup

from crashlab.report.html import svg
from crashlab.report.sweep.rows import label
from crashlab.sweep import facts
from crashlab.sweep.verdict import words

_ROWS = 40
_PANELS = 16
_STEPS = 400
_ROW, _PANEL = 46.0, 106.0
_DECADES = 6
_LEAST = 1e-200
"""Rates below this are no rates: a damaged file."""


def forest(counts: Sequence[facts.Count], baseline: Sequence[str]) -> Markup | None:
    """One bar an arm from the lower to the upper exact limit, a mark at the rate; a logarithmic axis.

    An arm without an event has an open bar up to its bound. None when no arm has a limit.
    """
    shown = [count for count in counts if count.high is not None and count.high > _LEAST][:_ROWS]
    if not shown:
        return None
    bottom, top = _span(shown)

    def at(value: float) -> float:
        return (math.log10(max(value, bottom)) - math.log10(bottom)) / (math.log10(top) - math.log10(bottom))

    out: list[Markup] = []
    y = 0.0
    for count in shown:
        out += _forest_row(count, count.arm in baseline, at, y)
        y += _ROW
    reference = [c.rate for c in shown if c.arm in baseline and c.rate and c.rate > 0]
    if reference:
        x = svg.percent(at(reference[0]))
        out.append(svg.line(x, 0, x, y - 6, "gap"))
    unit = shown[0].unit
    out.append(svg.text("0", y + 12, words.rate(bottom, unit), "t mono"))
    out.append(svg.text("100%", y + 12, words.rate(top, unit), "t mono", "end"))
    spoken = f"Rates of {len(shown)} arms with exact 95 % limits, logarithmic axis; the table says the same"
    return svg.picture(y + 20, spoken, *out, class_="pic forest")


def _span(shown: Sequence[facts.Count]) -> tuple[float, float]:
    """Powers of ten around all limits, at most six decades down from the top."""
    top = max(count.high or 0.0 for count in shown)
    lows = [v for count in shown for v in (count.low, count.rate, count.high) if v and v > _LEAST]
    high = math.ceil(math.log10(top) + 1e-9)
    low = max(math.floor(math.log10(min(lows))), high - _DECADES)
    return 10.0 ** min(low, high - 1), 10.0**high


def _forest_row(count: facts.Count, base: bool, at: Callable[[float], float], y: float) -> list[Markup]:
    high = at(count.high or 0.0)
    low = at(count.low) if count.low else 0.0
    name = label(count.arm, base)
    said = f"{count.events} in {words.amount(count.exposure, count.unit)}"
    limits = f"95 % limits to {words.rate(count.high or 0.0, count.unit)}"
    out = [
        svg.text("0", y + 12, f"{name}: {said}", "t strong" if base else "t"),
        svg.rect("0", y + 20, "100%", 14, "track"),
        svg.rect(
            svg.percent(low), y + 22, svg.percent(max(high - low, 0.004)), 10, "mem", f"{name}: {limits}"
        ),
    ]
    if count.rate and count.rate > 0:
        x = svg.percent(at(count.rate))
        out.append(svg.line(x, y + 18, x, y + 36, "limit"))
    elif not count.events:
        out.append(svg.text("2", y + 31, "◂", "t small"))
    return out


def survival(curves: Sequence[facts.Survival], baseline: Sequence[str]) -> Markup | None:
    """A panel an arm over one time axis: the share of runs without the event, its limits, ends of runs.

    None when there is nothing to draw.
    """
    ends = [max([s.hours for s in curve.steps] + list(curve.censored), default=0.0) for curve in curves]
    span = max(ends, default=0.0)
    if span <= 0:
        return None
    out: list[Markup] = []
    y = 0.0
    for curve, end in list(zip(curves, ends, strict=True))[:_PANELS]:
        out.append(svg.text("0", y + 13, label(curve.arm, curve.arm in baseline), "t strong"))
        out.append(svg.text("0", y + 29, summary(curve), "t small"))
        out.append(_panel(curve, end, span, y + 36))
        y += _PANEL
    out.append(svg.text("0", y + 2, "0 h under load", "t mono"))
    out.append(svg.text("100%", y + 2, words.duration(span), "t mono", "end"))
    spoken = f"Kaplan-Meier curves of {min(len(curves), _PANELS)} arms over {words.duration(span)} under load"
    return svg.picture(y + 10, spoken, *out)


def summary(curve: facts.Survival) -> str:
    """``3 events, 1 run ended without; half within 23 min``."""
    runs = curve.steps[0].at_risk if curve.steps else len(curve.censored)
    whole = max(runs, len(curve.censored))
    half = next((step.hours for step in curve.steps if step.survival <= 0.5), None)
    said = f"{len(curve.censored)} of {whole} runs ended without it"
    return said if half is None else f"{said}; half had it within {words.duration(half)}"


def _panel(curve: facts.Survival, end: float, span: float, y: float) -> Markup:
    scale = 1000.0 / span
    steps = curve.steps[:_STEPS]
    line = [(0.0, 1.0)]
    for step in steps:
        line += [(step.hours * scale, line[-1][1]), (step.hours * scale, step.survival)]
    line.append((max(end * scale, line[-1][0]), line[-1][1]))
    parts = [
        svg.element("rect", x=0, y=0, width=1000, height=100, class_="track"),
        *_limits(steps, end, scale),
    ]
    for hours in curve.censored[:_STEPS]:
        x = hours * scale
        height = _height(_survival_at(steps, hours))
        tip = svg.title(f"a run ended without it after {words.duration(hours)}")
        parts.append(
            svg.element("line", tip, x1=x, y1=height - 8, x2=x, y2=min(height + 8, 100.0), class_="event")
        )
    parts.append(svg.element("polyline", points=_points(line), class_="curve"))
    return svg.element(
        "svg", *parts, x="0", y=y, width="100%", height=54, viewBox="0 0 1000 100", preserveAspectRatio="none",
        class_="plot",
    )  # fmt: skip


def _limits(steps: Sequence[facts.SurvivalStep], end: float, scale: float) -> list[Markup]:
    """The area between the pointwise limits, where they are defined."""
    out = []
    for i, step in enumerate(steps):
        until = steps[i + 1].hours if i + 1 < len(steps) else max(end, step.hours)
        if step.low is not None and step.high is not None and until > step.hours:
            top, low = _height(step.high), _height(step.low)
            out.append(
                svg.element(
                    "rect", x=step.hours * scale, y=top, width=(until - step.hours) * scale,
                    height=max(low - top, 0.0), class_="mem between",
                )
            )  # fmt: skip
    return out


def _survival_at(steps: Sequence[facts.SurvivalStep], hours: float) -> float:
    known = [step.survival for step in steps if step.hours <= hours]
    return known[-1] if known else 1.0


def _height(share: float) -> float:
    return 96 - 92 * min(1.0, max(0.0, share))


def _points(line: Sequence[tuple[float, float]]) -> Markup:
    return Markup(" ".join(f"{svg.number(x)},{svg.number(_height(share))}" for x, share in line))
