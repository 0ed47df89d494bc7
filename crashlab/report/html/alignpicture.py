"""A misaligned access: where it begins between two multiples of its own width."""

from __future__ import annotations

from markupsafe import Markup

from crashlab import facts
from crashlab.postmortem.words import article, counted
from crashlab.report.html import svg

_ROWS = 8
_SLOTS = 3


def align_picture(address: facts.Address) -> Markup | None:
    """One row for each distinct remainder; None when no access is misaligned."""
    width = address.width_bytes or 0
    if width < 2:
        return None
    firsts: dict[int, list[facts.LaneAddress]] = {}
    for lane in address.per_lane:
        if lane.address is not None and lane.bad and lane.address % width:
            firsts.setdefault(lane.address % width, []).append(lane)
    if not firsts:
        return None
    out = [svg.text("0", 13, f"Slots of {width} bytes and the access", "t strong")]
    y = 24.0
    for rest, lanes in sorted(firsts.items())[:_ROWS]:
        first = lanes[0]
        for slot in range(_SLOTS):
            out.append(
                svg.rect(
                    svg.percent(slot / _SLOTS), y, svg.percent(1 / _SLOTS), 20, "mem slot", "aligned slot"
                )
            )
        tip = f"{_lanes(len(lanes))}, {counted(rest, 'byte')} past a multiple of {width}; first: {first.address}"
        share = rest / width / _SLOTS + 1 / _SLOTS
        out.append(svg.rect(svg.percent(share), y + 4, svg.percent(1 / _SLOTS), 12, "bad", tip))
        base = (first.address or 0) - rest
        out.append(svg.text(svg.percent(1 / _SLOTS), y + 34, hex(base), "t mono", "middle"))
        out.append(svg.text("100%", y + 34, f"+{rest} bytes, {_lanes(len(lanes))}", "t mono", "end"))
        y += 46
    label = (
        f"Picture of {article(width)} {width}-byte access that begins "
        f"{', '.join(str(r) for r in sorted(firsts)[:_ROWS])} bytes past a multiple of {width}"
    )
    return svg.picture(y, label, *out)


def _lanes(count: int) -> str:
    return counted(count, "lane")
