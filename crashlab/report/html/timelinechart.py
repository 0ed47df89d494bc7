"""The run's course: token rate, requests in flight, KV-cache use, states and events on one time axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from crashlab.report.html import svg
from crashlab.report.timeline import Event, Sample, Timeline, thinned

_HEIGHT = 64.0
_TICKS = 5
_EVENTS = 200
_STATES = ("STARTING", "IDLE", "PROGRESSING", "PREFILLING", "STALLED", "DUMPING", "DEAD")
_KINDS = ("fault", "error", "dump")


class _Panel(NamedTuple):
    name: str
    unit: str
    value: Callable[[Sample], float | None]
    top: float | None


_PANELS = (
    _Panel("Tokens per second", "", lambda s: s.tokens_per_s, None),
    _Panel("Requests in flight", "", lambda s: s.in_flight, None),
    _Panel(
        "KV-cache use", " %", lambda s: None if s.kv_cache_usage is None else s.kv_cache_usage * 100, 100.0
    ),
)


def timeline_chart(timeline: Timeline) -> Markup | None:
    """Small multiples over one axis; the page's script can zoom them by their ``viewBox``. None when empty."""
    if timeline.span is None:
        return None
    start, end = timeline.span
    span = max(end - start, 1e-3)
    samples = thinned(timeline.samples)
    events = timeline.events[:_EVENTS]
    out: list[Markup] = []
    y = 0.0
    for panel in _PANELS:
        points = [(s.time, v) for s in samples if (v := panel.value(s)) is not None]
        if points:
            out += _panel(panel, points, samples, events, start, span, y)
            y += _HEIGHT + 34
    if not out:
        out.append(_plot(y + 8, start, span, [*_bands(samples, start + span), *_marks(events)], 24))
        y += 40
    for tick in range(_TICKS):
        share = tick / (_TICKS - 1)
        anchor = "start" if tick == 0 else "end" if tick == _TICKS - 1 else "middle"
        words, x = clock(start + share * span), svg.percent(share)
        out.append(
            svg.element(
                "text", words, x=x, y=y + 12, class_="t mono tick", text_anchor=anchor, data_share=share
            )
        )
    return svg.element(
        "svg", *out, class_="pic timeline", role="img", width="100%", height=y + 20,
        aria_label=summary(timeline), data_start=start, data_span=span,
    )  # fmt: skip


def _panel(
    panel: _Panel, points: Sequence[tuple[float, float]], samples: Sequence[Sample], events: Sequence[Event],
    start: float, span: float, y: float,
) -> list[Markup]:  # fmt: skip
    low, high = min(v for _, v in points), max(v for _, v in points)
    top = panel.top or high or 1.0
    path = " ".join(f"{svg.number(t)},{svg.number(100 - 96 * min(v / top, 1.0))}" for t, v in points)
    curve = svg.element("polyline", points=Markup(path), class_="curve")
    parts = [*_bands(samples, start + span), *_marks(events), curve]
    words = f"{svg.number(round(low, 1))} to {svg.number(round(high, 1))}{panel.unit}"
    return [
        svg.text("0", y + 13, panel.name, "t strong"),
        svg.text("100%", y + 13, words, "t mono", "end"),
        _plot(y + 20, start, span, parts, _HEIGHT),
    ]


def _plot(y: float, start: float, span: float, parts: Sequence[Markup], height: float) -> Markup:
    box = f"{svg.number(start)} 0 {svg.number(span)} 100"
    frame = svg.element("rect", x=start, y=0, width=span, height=100, class_="track")
    return svg.element(
        "svg", frame, *parts, x="0", y=y, width="100%", height=height, viewBox=box, preserveAspectRatio="none",
        class_="plot",
    )  # fmt: skip


def _bands(samples: Sequence[Sample], end: float) -> list[Markup]:
    """One coloured stretch for each state that lasted; PROGRESSING and unknown states stay plain."""
    out, begun = [], 0
    for i in range(1, len(samples) + 1):
        if i < len(samples) and samples[i].state == samples[begun].state:
            continue
        state = samples[begun].state
        until = samples[i].time if i < len(samples) else end
        if state in _STATES and state != "PROGRESSING":
            css = f"band st-{state.lower()}"
            width = max(until - samples[begun].time, 0.0)
            out.append(
                svg.element(
                    "rect", svg.title(state), x=samples[begun].time, y=0, width=width, height=100, class_=css
                )
            )
        begun = i
    return out


def _marks(events: Sequence[Event]) -> list[Markup]:
    return [
        svg.element(
            "line", svg.title(f"{clock(e.time)} {e.what}"), x1=e.time, y1=0, x2=e.time, y2=100,
            class_=f"event ev-{e.kind if e.kind in _KINDS else 'note'}",
        )
        for e in events
    ]  # fmt: skip


def clock(seconds: float) -> str:
    """``1:02:03`` from the start of the run."""
    whole = int(seconds)
    sign = "-" if whole < 0 else ""
    hours, rest = divmod(abs(whole), 3600)
    return f"{sign}{hours}:{rest // 60:02}:{rest % 60:02}"


def summary(timeline: Timeline) -> str:
    """What the chart shows, in a sentence."""
    span = timeline.span
    if span is None:
        return "no observations"
    states = [s.state for s in timeline.samples if s.state]
    last = f"; the last state was {states[-1]}" if states else ""
    faults = [e for e in timeline.events if e.kind == "fault"]
    fault = f"; first fault at {clock(faults[0].time)}" if faults else ""
    return f"{len(timeline.samples)} observations from {clock(span[0])} to {clock(span[1])}{last}{fault}"
