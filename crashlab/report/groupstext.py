"""The grouping of many crashes as text."""

from __future__ import annotations

from collections.abc import Iterator

from crashlab.postmortem.words import counted
from crashlab.report.groups import CrashGroup, Groups
from crashlab.report.safe import one_line
from crashlab.report.text import WIDTH, Paragraph, Piece, page

_COPIES_SHOWN = 4


def render(found: Groups, *, width: int = WIDTH) -> str:
    """One paragraph a group, the judgement over all of them last."""
    return page(_lines(found), width)


def _lines(found: Groups) -> Iterator[Piece]:
    yield Paragraph(summary(found))
    if found.copies:
        names = ", ".join(found.copies[:_COPIES_SHOWN]) + (", …" if len(found.copies) > _COPIES_SHOWN else "")
        yield Paragraph(one_line(f"the same bytes, counted once: {names}"), "copies       ", " " * 13)
    for entry in found.groups:
        yield ""
        yield from _group(entry)
    if found.unreadable:
        yield ""
        for text in found.unreadable[:10]:
            yield Paragraph(one_line(text), "unreadable   ", " " * 13)
    yield ""
    word = {True: "suspect", False: "not suspect", None: "cannot tell"}[found.hardware_suspect]
    yield Paragraph(f"{word}: {' '.join(found.reasons)}", "hardware     ", " " * 13)


def summary(found: Groups) -> str:
    """``3 files, 2 distinct: 2 dumps in 1 group``."""
    crashes = sum(g.crashes for g in found.groups)
    text = f"{counted(crashes, 'dump')} in {counted(len(found.groups), 'group')}"
    if found.unreadable:
        text += f", {len(found.unreadable):,} unreadable"
    if found.files is None or not found.copies:
        return text
    return f"{counted(found.files, 'file')}, {crashes + len(found.unreadable):,} distinct: {text}"


def _group(entry: CrashGroup) -> Iterator[Piece]:
    yield Paragraph(one_line(entry.headline), f"{entry.crashes:5} x  ", " " * 9)
    if entry.key:
        yield f"         key    {one_line(entry.key, 200)}"
    if len(entry.fine_keys) > 1:
        yield f"         {len(entry.fine_keys)} distinct instructions, builds or architectures among them"
    places = ", ".join(entry.sms[:8]) + (", …" if len(entry.sms) > 8 else "")
    hosts = f"; hosts: {', '.join(entry.hosts[:6])}" if entry.hosts else ""
    yield Paragraph(f"device:SM {places or 'unknown'}{hosts}", "         where  ", " " * 16)
    if entry.first:
        when = entry.first if entry.first == entry.last else f"{entry.first} to {entry.last}"
        yield f"         when   {when}"
    names = ", ".join(entry.dumps[:4]) + (f" and {entry.crashes - 4} more" if entry.crashes > 4 else "")
    yield Paragraph(one_line(names), "         dumps  ", " " * 16)
