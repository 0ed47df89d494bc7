"""The grouping of many crashes as text."""

from __future__ import annotations

from collections.abc import Iterator

from crashlab.report.groups import CrashGroup, Groups
from crashlab.report.safe import one_line
from crashlab.report.text import wrapped


def render(found: Groups) -> str:
    """One paragraph a group, the judgement over all of them last."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Groups) -> Iterator[str]:
    crashes = sum(g.crashes for g in found.groups)
    yield f"{crashes} dumps in {len(found.groups)} groups" + (
        f", {len(found.unreadable)} unreadable" if found.unreadable else ""
    )
    for entry in found.groups:
        yield ""
        yield from _group(entry)
    if found.unreadable:
        yield ""
        for text in found.unreadable[:10]:
            yield from wrapped(one_line(text), "unreadable   ", " " * 13)
    yield ""
    word = {True: "suspect", False: "not suspect", None: "cannot tell"}[found.hardware_suspect]
    yield from wrapped(f"{word}: {' '.join(found.reasons)}", "hardware     ", " " * 13)


def _group(entry: CrashGroup) -> Iterator[str]:
    yield from wrapped(one_line(entry.headline), f"{entry.crashes:5} x  ", " " * 9)
    if entry.key:
        yield f"         key    {one_line(entry.key, 200)}"
    if len(entry.fine_keys) > 1:
        yield f"         {len(entry.fine_keys)} distinct instructions, builds or architectures among them"
    places = ", ".join(entry.sms[:8]) + (", …" if len(entry.sms) > 8 else "")
    hosts = f"; hosts: {', '.join(entry.hosts[:6])}" if entry.hosts else ""
    yield from wrapped(f"device:SM {places or 'unknown'}{hosts}", "         where  ", " " * 16)
    if entry.first:
        when = entry.first if entry.first == entry.last else f"{entry.first} to {entry.last}"
        yield f"         when   {when}"
    names = ", ".join(entry.dumps[:4]) + (f" and {entry.crashes - 4} more" if entry.crashes > 4 else "")
    yield from wrapped(one_line(names), "         dumps  ", " " * 16)
