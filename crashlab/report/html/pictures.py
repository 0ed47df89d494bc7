"""Which picture each section shows, its caption, legend and the same as a table."""

from __future__ import annotations

from typing import Any, NamedTuple

from crashlab import facts
from crashlab.report.html.addressmap import address_map
from crashlab.report.html.alignpicture import align_picture
from crashlab.report.html.lanegrid import WORDS, counts, lane_picture, warp_rows
from crashlab.report.html.smpicture import KERNEL_COLOURS, sm_picture, summary
from crashlab.report.html.timelinechart import clock, timeline_chart
from crashlab.report.html.timelinechart import summary as timeline_summary
from crashlab.report.html.windowpicture import window_picture
from crashlab.report.timeline import Timeline

_TABLE_ROWS = 256
_GPUS = 16
_EVENTS = 60


class Key(NamedTuple):
    """One entry of a legend."""

    css: str
    label: str


_HITS = (Key("bad", "accessed badly"), Key("ok", "in bounds"), Key("maybe", "cannot be judged"))
_BANDS = (
    Key("st-prefilling", "starting or prefilling"),
    Key("st-idle", "idle"),
    Key("st-stalled", "stalled or dead"),
    Key("st-dumping", "dumping"),
    Key("ev-fault", "fault"),
)


def sections(report: facts.Report, timeline: Timeline | None) -> dict[str, Any]:
    """The drawn sections by name; None where there is nothing to draw."""
    return {
        "address": _address(report),
        "lanes": _lanes(report),
        "gpus": _gpus(report),
        "timeline": _timeline(timeline),
    }


def _address(report: facts.Report) -> dict[str, Any] | None:
    address = report.verdict.address
    if address is None or (address.state == "not-applicable" and not address.finding):
        return None
    picture, caption, legend = None, "", []
    if address.kind == "misaligned":
        picture = align_picture(address)
        caption = "Each access must begin where a slot begins."
    elif address.space in ("shared", "local"):
        picture = window_picture(address)
        states = {"bad" if a.bad else "ok" if a.bad is False else "maybe" for a in address.per_lane}
        legend = [
            Key("mem", "inside the limit"),
            Key("beyond", "past it"),
            *(k for k in _HITS if k.css in states),
        ]
        caption = "Offsets in the window, to scale."
    elif address.value is not None:
        gpu = next((g for g in report.gpus if g.landmarks), None)
        picture = address_map(address, gpu.landmarks if gpu else ())
        caption = "Lowest address first, not to scale: distances are written."
    rows = [_lane_row(lane) for lane in address.per_lane[:_TABLE_ROWS]]
    why = address.why if address.state != "not-recoverable" else f"Not recoverable: {address.why}"
    return {
        "finding": address.finding and address.finding[:1].upper() + address.finding[1:],
        "why": why,
        "picture": picture,
        "caption": caption,
        "legend": legend,
        "rows": rows,
        "left_out": len(address.per_lane) - len(rows),
    }


def _lane_row(lane: facts.LaneAddress) -> dict[str, Any]:
    judged = "accessed badly" if lane.bad else "in bounds" if lane.bad is False else "cannot be judged"
    place = [f"SM {lane.sm}" if lane.sm is not None else "", str(lane.warp) if lane.warp is not None else ""]
    return {
        "lane": lane.lane,
        "thread": str(lane.thread) if lane.thread else "",
        "block": str(lane.block) if lane.block else "",
        "place": ", ".join(p for p in place if p),
        "address": str(lane.address) if lane.address is not None else "none",
        "words": "predicated off"
        if lane.predicated_off
        else f"{judged}{f': {lane.why}' if lane.why else ''}",
        "bad": bool(lane.bad),
    }


def _lanes(report: facts.Report) -> dict[str, Any] | None:
    warps = tuple(w for gpu in report.gpus for w in gpu.warps)
    rows = warp_rows(report.verdict.address, warps)
    picture = lane_picture(rows)
    if picture is None:
        return None
    present = {state for row in rows for state, _ in row.lanes}
    legend = [Key(state, words) for state, words in WORDS.items() if state in present]
    many = f"{len(rows)} faulting warp{'s' if len(rows) != 1 else ''}"
    return {"picture": picture, "summary": f"{many}: {counts(rows)}", "legend": legend}


def _gpus(report: facts.Report) -> list[dict[str, Any]]:
    out = []
    for gpu in (report.gpus or _inferred(report))[:_GPUS]:
        picture = sm_picture(gpu)
        if picture is None:
            continue
        legend = [Key(f"k{i % KERNEL_COLOURS}", name) for i, name in enumerate(gpu.kernels[:12])]
        if any(s.exception for s in gpu.sms):
            legend.append(Key("fault", "reported the fault (marked corner)"))
        if any(s.blocks and not s.kernels for s in gpu.sms):
            legend.append(Key("busy", "ran a kernel without a name"))
        legend.append(Key("idle", "nothing resident"))
        name = ", ".join(p for p in (gpu.name, gpu.arch) if p)
        out.append({
            "picture": picture,
            "summary": summary(gpu),
            "legend": legend,
            "title": f"GPU {gpu.device if gpu.device is not None else ''} {name}".strip(),
        })  # fmt: skip
    return out


def _inferred(report: facts.Report) -> tuple[facts.Gpu, ...]:
    """Reports of older versions have no map, only the SMs of each fault."""
    where = report.verdict.where
    name = report.verdict.exception.name if report.verdict.exception else None
    if where is None or not where.sms or name is None:
        return ()
    states = tuple(facts.SmState(sm, exception=name) for sm in where.sms if 0 <= sm < 4096)
    return (facts.Gpu(where.device, where.device_name, where.sm_arch, sms=states),)


def _timeline(timeline: Timeline | None) -> dict[str, Any] | None:
    picture = timeline_chart(timeline) if timeline else None
    if timeline is None or picture is None:
        return None
    events = [{"time": clock(e.time), "kind": e.kind, "what": e.what} for e in timeline.events[:_EVENTS]]
    return {
        "picture": picture,
        "summary": timeline_summary(timeline),
        "legend": list(_BANDS),
        "events": events,
    }
