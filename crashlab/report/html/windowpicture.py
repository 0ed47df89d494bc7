"""A block's shared memory (or a thread's local memory) with its limit and where each access fell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from crashlab import facts
from crashlab.report.html import svg

_NOUNS = {"shared": "the block's shared memory", "local": "the thread's local memory"}
_WARPS_SHOWN = 3
_ROW = 3
_MARGIN = 0.04


class _Hit(NamedTuple):
    lane: facts.LaneAddress
    start: int
    end: int

    @property
    def css(self) -> str:
        return "bad" if self.lane.bad else "ok" if self.lane.bad is False else "maybe"


def window_picture(address: facts.Address) -> Markup | None:
    """The whole window above, the accesses enlarged below; None when there is nothing to draw."""
    width = address.width_bytes or 1
    hits = [_Hit(a, a.address, a.address + width) for a in address.per_lane if a.address is not None]
    if not hits or address.space not in _NOUNS:
        return None
    noun = _NOUNS[address.space]
    low, high = min(h.start for h in hits), max(h.end for h in hits)
    bound = f"; it ends at {hex(address.limit)}" if address.limit is not None else ""
    label = f"Picture of {noun}{bound}; {len(hits)} accesses from {hex(low)} to {hex(high)}"
    overview, y = _overview(hits, address.limit, noun, low, high)
    detail, height = _detail(hits, address.limit, low, high, y + 14)
    return svg.picture(height, label, *overview, *detail)


def _overview(
    hits: Sequence[_Hit], limit: int | None, noun: str, low: int, high: int
) -> tuple[list[Markup], float]:
    """A bar for the window with the limit, and one tick for each access."""
    top = max(high, limit or 0) * (1 + _MARGIN) or 1.0
    out = [svg.text("0", 13, f"{noun[:1].upper()}{noun[1:]}", "t strong")]
    out.append(svg.rect("0", 22, "100%", 26, "beyond", "past the end"))
    if limit is not None:
        share = limit / top
        out.append(svg.rect("0", 22, svg.percent(share), 26, "mem", f"0 to {hex(limit)}"))
        out.append(svg.line(svg.percent(share), 18, svg.percent(share), 52, "limit"))
    for hit in sorted({(h.start, h.end, h.css) for h in hits}):
        start, end, css = hit
        share = max((end - start) / top, 0.003)
        out.append(svg.rect(svg.percent(min(start / top, 1 - share)), 22, svg.percent(share), 26, css))
    y = 66.0
    out.append(svg.text("0", y, "0x0", "t mono"))
    if limit is not None:
        share = limit / top
        anchor = svg.anchored(share)
        out.append(
            svg.text(svg.percent(share), y + 16, f"end {hex(limit)} = {limit:,} bytes", "t mono", anchor)
        )
    share = (low + high) / 2 / top
    span = hex(low) if len(hits) == 1 else f"{hex(low)} to {hex(high)}"
    out.append(svg.text(svg.percent(share), y + 32, f"accessed {span}", "t mono", svg.anchored(share)))
    return out, y + 32


def _detail(
    hits: Sequence[_Hit], limit: int | None, low: int, high: int, y: float
) -> tuple[list[Markup], float]:
    """Each lane a row, enlarged to the bytes that were accessed and the limit if it is near."""
    span = max(high - low, 1)
    margin = span // 16 + 1
    left, right = low - margin, high + margin
    near = limit is not None and low - 2 * span <= limit <= high + 2 * span
    if near and limit is not None:
        left, right = min(left, limit - margin), max(right, limit + margin)
    left = max(0, left)

    def at(offset: int) -> float:
        return (offset - left) / (right - left)

    out = [svg.text("0", y + 10, "Enlarged: one row a lane", "t strong")]
    y += 18
    warps: dict[tuple[int | None, facts.Dim3 | None, int | None], list[_Hit]] = {}
    for hit in hits:
        warps.setdefault((hit.lane.sm, hit.lane.block, hit.lane.warp), []).append(hit)
    start = y
    for (sm, block, warp), members in list(warps.items())[:_WARPS_SHOWN]:
        out.append(svg.text("0", y + 11, warp_label(sm, block, warp), "t small"))
        y += 16
        height = max(1, len(members)) * _ROW
        out.append(svg.rect("0", y, "100%", height, "track"))
        if near and limit is not None:
            out.append(svg.rect("0", y, svg.percent(at(limit)), height, "mem"))
        for row, hit in enumerate(sorted(members, key=lambda h: h.lane.lane)):
            share = max(at(hit.end) - at(hit.start), 0.004)
            tip = f"lane {hit.lane.lane}, thread {hit.lane.thread}: {hex(hit.start)} to {hex(hit.end)}"
            x = svg.percent(min(at(hit.start), 1 - share))
            out.append(svg.rect(x, y + row * _ROW, svg.percent(share), _ROW - 0.5, hit.css, tip))
        y += height + 6
    if near and limit is not None:
        out.append(svg.line(svg.percent(at(limit)), start + 16, svg.percent(at(limit)), y - 4, "limit"))
    out.append(svg.text("0", y + 10, hex(left), "t mono"))
    out.append(svg.text("100%", y + 10, hex(right), "t mono", "end"))
    if near and limit is not None and 0.25 < at(limit) < 0.75:
        out.append(svg.text(svg.percent(at(limit)), y + 10, f"end {hex(limit)}", "t mono", "middle"))
    y += 16
    if len(warps) > _WARPS_SHOWN:
        out.append(svg.text("0", y + 12, more_warps(len(warps) - _WARPS_SHOWN, "see the table"), "t small"))
        y += 18
    return out, y + 4


def more_warps(count: int, where: str) -> str:
    """``and 2 more warps: see the table``."""
    return f"and {count} more warp{'s' if count != 1 else ''}: {where}"


def warp_label(sm: int | None, block: facts.Dim3 | None, warp: int | None) -> str:
    """``SM 12 · block (0,0,0) · warp 3`` with what is known."""
    parts = [
        f"SM {sm}" if sm is not None else "",
        f"block {block}" if block is not None else "",
        f"warp {warp}" if warp is not None else "",
    ]
    return " · ".join(p for p in parts if p) or "one warp"
