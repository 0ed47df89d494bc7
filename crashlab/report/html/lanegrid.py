"""Warps and lanes: who was active, who accessed badly, whose predicate was off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from crashlab import facts
from crashlab.report.html import svg
from crashlab.report.html.windowpicture import more_warps, warp_label

_WARPS = 24
_LANES = 32
_SYMBOLS = {"bad": "×", "marked": "!", "off": "–", "maybe": "?"}
WORDS = {
    "bad": "accessed badly",
    "marked": "carries the exception",
    "maybe": "accessed, cannot be judged",
    "ok": "active, access in bounds",
    "active": "active",
    "off": "predicated off",
    "inactive": "not active",
    "none": "no thread",
}


class WarpRow(NamedTuple):
    """One warp for the grid: a label and one state for each of its lanes (a key of ``WORDS``)."""

    label: str
    lanes: tuple[tuple[str, str], ...]


def warp_rows(address: facts.Address | None, warps: Sequence[facts.WarpState]) -> list[WarpRow]:
    """Warps by what is known of each lane: its own access first, else the dump's lane masks."""
    by_warp: dict[tuple[int | None, facts.Dim3 | None, int | None], dict[int, tuple[str, str]]] = {}
    for lane in address.per_lane if address else ():
        key = (lane.sm, lane.block, lane.warp)
        by_warp.setdefault(key, {})[lane.lane] = (_state(lane), _tip(lane))
    masks: dict[tuple[int | None, facts.Dim3 | None, int | None], facts.WarpState] = {
        (w.sm, w.block, w.warp): w for w in warps
    }
    out = []
    for key in dict.fromkeys((*by_warp, *masks)):
        known, mask = by_warp.get(key, {}), masks.get(key)
        lanes = tuple(known.get(i) or _masked(mask, i) for i in range(_LANES))
        out.append(WarpRow(warp_label(*key), lanes))
    return out


def _state(lane: facts.LaneAddress) -> str:
    if lane.predicated_off:
        return "off"
    return "bad" if lane.bad else "ok" if lane.bad is False else "maybe"


def _tip(lane: facts.LaneAddress) -> str:
    where = f" at {lane.address}" if lane.address is not None else ""
    thread = f", thread {lane.thread}" if lane.thread else ""
    return f"lane {lane.lane}{thread}: {WORDS[_state(lane)]}{where}"


def _masked(mask: facts.WarpState | None, lane: int) -> tuple[str, str]:
    state = "none"
    if mask is not None:
        valid = mask.valid if mask.valid is not None else (1 << _LANES) - 1
        if mask.exception is not None and mask.exception >> lane & 1:
            state = "marked"
        elif mask.active is not None and mask.active >> lane & 1:
            state = "active"
        elif valid >> lane & 1:
            state = "inactive"
    return state, f"lane {lane}: {WORDS[state]}"


def lane_picture(rows: Sequence[WarpRow]) -> Markup | None:
    """32 cells a warp; None without any warp."""
    if not rows:
        return None
    out, y = [], 0.0
    for row in rows[:_WARPS]:
        out.append(svg.text("0", y + 12, row.label, "t small"))
        y += 18
        for lane, (state, tip) in enumerate(row.lanes):
            x = lane / _LANES
            out.append(svg.rect(svg.percent(x), y, svg.percent(0.9 / _LANES), 18, f"lane {state}", tip))
            symbol = _SYMBOLS.get(state)
            if symbol:
                middle = svg.percent(x + 0.45 / _LANES)
                out.append(svg.text(middle, y + 13, symbol, f"sym {state}", "middle"))
        y += 26
    if len(rows) > _WARPS:
        out.append(svg.text("0", y + 12, more_warps(len(rows) - _WARPS, "not drawn"), "t small"))
        y += 18
    return svg.picture(y, f"Lanes of {len(rows)} warp{'s' if len(rows) != 1 else ''}: {counts(rows)}", *out)


def counts(rows: Sequence[WarpRow]) -> str:
    """``32 accessed badly, 96 active, access in bounds``."""
    totals: dict[str, int] = {}
    for row in rows:
        for state, _tip in row.lanes:
            totals[state] = totals.get(state, 0) + 1
    return "; ".join(f"{totals[state]} {words}" for state, words in WORDS.items() if totals.get(state))
