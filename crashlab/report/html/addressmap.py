"""The global address space as a list of places, lowest first: allocations, arguments, the bad address."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from crashlab import facts
from crashlab.report.html import svg

_PAGE = 2 << 20
_PLACES = 14
_ROW, _GAP = 40.0, 22.0
_LAST_USER = 1 << 47
"""Addresses from here to the mirrored upper half are no addresses at all (bits 47 to 63 must agree)."""


class _Place(NamedTuple):
    start: int
    end: int
    label: str
    css: str


def address_map(address: facts.Address, landmarks: Sequence[facts.Landmark]) -> Markup | None:
    """Not to scale: the distance between neighbours is written between them. None without an address."""
    hits = list(_hits(address))
    if not hits:
        return None
    places = _nearest([*_marks(landmarks), *_fixed(hits)], hits)
    places = sorted([*places, *hits], key=lambda p: (p.start, p.css != "mem"))
    out: list[Markup] = []
    y = 4.0
    reach: int | None = None  # the highest end so far: a place may lie inside one before it
    for place in places:
        if reach is not None:
            out.append(_gap(place.start - reach, y))
            y += _GAP
        out += _row(place, y)
        y += _ROW
        reach = max(reach or 0, place.end)
    compared = len(places) - len(hits)
    label = (
        f"Picture of the address space around {hex(hits[0].start)}, with {compared} places to compare it with"
    )
    return svg.picture(y + 4, label, *out)


def _row(place: _Place, y: float) -> Iterable[Markup]:
    yield svg.rect("0", y, "14", _ROW - 4, place.css)
    span = hex(place.start)
    if place.end > place.start:
        span += f" to {hex(place.end)}"
    yield svg.text("24", y + 14, place.label, "t strong" if place.css != "mem" else "t")
    yield svg.text("24", y + 30, span, "t mono")


def _gap(distance: int, y: float) -> Markup:
    if distance < 0:
        words = f"{-distance:,} bytes before its end"
    elif distance == 0:
        words = "directly after it"
    else:
        words = f"{distance:,} bytes{_rounded(distance)}"
    line = svg.line("7", y - 3, "7", y + _GAP - 1, "gap")
    return line + svg.text("24", y + 13, f"↕ {words}", "t small")


def _rounded(size: int) -> str:
    for unit, name in ((1 << 50, "PiB"), (1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB")):
        if size >= unit:
            return f" = {size / unit:.1f} {name}"
    return ""


def _hits(address: facts.Address) -> Iterable[_Place]:
    """Accesses, those of neighbouring pages as one; those judged good apart from the others."""
    width = address.width_bytes or 1
    groups: list[tuple[str, list[int]]] = []
    known = [
        (a.address, "ok" if a.bad is False else "bad" if a.bad else "maybe")
        for a in address.per_lane
        if a.address is not None
    ]
    known.sort(key=lambda pair: pair[0])
    if not known and address.value is not None:
        known = [(address.value, "bad")]
    for value, css in known:
        if groups and groups[-1][0] == css and value - groups[-1][1][-1] < _PAGE:
            groups[-1][1].append(value)
        else:
            groups.append((css, [value]))
    words = {"ok": "access that was not blamed", "bad": "bad access", "maybe": "access, not judged"}
    for css, values in groups[:6]:
        count = f"{len(values)} × " if len(values) > 1 else ""
        yield _Place(values[0], values[-1] + width, f"{count}{words[css]}", css)


def _marks(landmarks: Sequence[facts.Landmark]) -> Iterable[_Place]:
    for mark in landmarks:
        size = f", {mark.size:,} bytes" if mark.size else ""
        label = mark.label if mark.size else f"{mark.label} points here"
        yield _Place(mark.start, mark.start + (mark.size or 0), f"{label}{size}", "mem")


def _fixed(hits: Sequence[_Place]) -> Iterable[_Place]:
    """The ends of what can be an address, when an access lies near or past them."""
    if hits[0].start < 1 << 36:
        yield _Place(0, 0, "address 0: nothing is mapped here", "mem")
    if hits[-1].end >= _LAST_USER:
        yield _Place(_LAST_USER, _LAST_USER, "2^47: above this no address is valid", "mem")


def _nearest(places: list[_Place], hits: Sequence[_Place]) -> list[_Place]:
    """At most a screenful of places, those nearest to an access."""
    unique = list({(p.start, p.end, p.label): p for p in places}.values())

    def distance(place: _Place) -> int:
        return min(max(h.start - place.end, place.start - h.end, 0) for h in hits)

    return sorted(unique, key=distance)[:_PLACES]
