"""Levers out of TOML: those that ship with crashlab (``levers/*.toml``) and those of a plan."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any

from crashlab.errors import UsageError
from crashlab.sweep.lever import (
    CONFIG,
    ENVIRONMENT,
    FLAG,
    LIBRARY,
    LOG,
    OVERLAY,
    SERVER_INFO,
    SOURCES,
    SWITCH,
    VARIABLE,
    Lever,
    Show,
    Way,
)
from crashlab.sweep.tomltext import Table, parse

_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,79}")
_NAME = re.compile(r"[A-Z_][A-Z0-9_]{0,199}")
_VERSION = re.compile(r"\d{1,6}(\.\d{1,6}){0,3}")


@lru_cache(maxsize=1)
def bundled() -> Mapping[str, Lever]:
    """The levers that ship with crashlab, by id."""
    out: dict[str, Lever] = {}
    folder = resources.files("crashlab.sweep") / "levers"
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".toml"):
            family = file.name.removesuffix(".toml")
            table = parse(file.read_text(encoding="utf-8"), f"levers/{file.name}")
            out.update((lever.id, lever) for lever in levers_of(table.tables("lever"), family))
    return out


def merged(own: Iterable[Lever]) -> Mapping[str, Lever]:
    """The bundled levers with a plan's own; one of the same id replaces the bundled one."""
    return {**bundled(), **{lever.id: lever for lever in own}}


def find(levers: Mapping[str, Lever], name: str) -> Lever:
    """A lever by id, or by the option or variable that sets it. Raises UsageError with the nearest names."""
    if name in levers:
        return levers[name]
    for lever in levers.values():
        if any(way.name == name for way in lever.ways):
            return lever
    import difflib

    near = difflib.get_close_matches(name, levers, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    raise UsageError(
        f"No lever is called {name!r}.",
        hint=f"{hint}'crashlab sweep --list-levers' shows all; a [[lever]] table in the plan adds one.",
    )


def levers_of(tables: Sequence[Table], family: str = "own") -> list[Lever]:
    """``[[lever]]`` tables. Raises UsageError that names the table and the key."""
    out: list[Lever] = []
    seen: set[str] = set()
    for table in tables:
        lever = _lever(table, family)
        if lever.id in seen:
            raise UsageError(
                f"{table.where}: the lever {lever.id!r} is there twice.", hint="Rename one of them."
            )
        seen.add(lever.id)
        out.append(lever)
    return out


def _lever(table: Table, family: str) -> Lever:
    name = table.text("id")
    if name is None or not _ID.fullmatch(name):
        raise table.wrong("id", "a short name of letters, digits, '-', '.' and '_'")
    table = table.at(f"lever {name!r}")
    ways = tuple(_way(way) for way in table.tables("way"))
    if not ways:
        raise table.wrong("way", "at least one [[lever.way]] with flag, switch, variable or overlay")
    slowdown = table.number("slowdown")
    lever = Lever(
        id=name,
        title=table.text("title") or name,
        family=table.text("family") or family,
        ways=ways,
        values=table.texts("values"),
        suggest=table.texts("suggest"),
        shows=tuple(_show(show) for show in table.tables("show")),
        denies=tuple(_regex(table, "denies", one, groups=0) for one in table.texts("denies")),
        excludes=table.texts("excludes"),
        confounds=table.texts("confounds"),
        cost=table.text("cost"),
        slowdown=1.0 if slowdown is None else slowdown,
        timing=table.flag("timing") or False,
        prepare=table.commands("prepare"),
    )
    table.done()
    if any(way.kind == SWITCH for way in ways) and set(lever.values or ("on", "off")) != {"on", "off"}:
        raise table.wrong("values", '["on", "off"] for a switch')
    return lever


def _way(table: Table) -> Way:
    given = {kind: table.text(kind) for kind in (FLAG, SWITCH, VARIABLE)}
    overlay = table.flag(OVERLAY)
    kinds = [kind for kind, name in given.items() if name is not None] + ([OVERLAY] if overlay else [])
    if len(kinds) != 1:
        raise table.wrong("way", "exactly one of flag, switch, variable and overlay")
    kind = kinds[0]
    name = given.get(kind) or ""
    if kind in (FLAG, SWITCH) and not name.startswith("-"):
        raise table.wrong(kind, "an option that begins with '-'")
    if kind == VARIABLE and not _NAME.fullmatch(name):
        raise table.wrong(kind, "the name of an environment variable")
    way = Way(
        kind,
        name,
        off=table.text("off"),
        joined=table.flag("joined") or False,
        means=table.text_map("means"),
        probe=table.texts("probe"),
        since=_version(table, "since"),
        until=_version(table, "until"),
    )
    table.done()
    return way


def _show(table: Table) -> Show:
    source = table.text("source")
    if source not in SOURCES:
        raise table.wrong("source", f"one of {', '.join(SOURCES)}")
    read = table.text("read")
    show = Show(
        source,
        read=None if read is None else _regex(table, "read", read, groups=1),
        path=table.text("path"),
        library=table.text("library"),
        means=table.text_map("means"),
        only=table.texts("only"),
        begins=table.flag("begins") or False,
    )
    table.done()
    needed = {LOG: "read", CONFIG: "read", SERVER_INFO: "path", LIBRARY: "library", ENVIRONMENT: None}[source]
    if needed is not None and not getattr(show, needed):
        raise table.wrong(needed, f"needed by source = {source!r}")
    return show


def _regex(table: Table, key: str, text: str, *, groups: int) -> str:
    try:
        compiled = re.compile(text.replace("{name}", "NAME"))
    except (re.error, RecursionError, OverflowError) as error:
        raise table.wrong(key, f"a regular expression ({error})") from error
    if compiled.groups != groups:
        raise table.wrong(key, f"a regular expression with {groups or 'no'} group(s)")
    return text


def _version(table: Table, key: str) -> str | None:
    text = table.text(key)
    if text is not None and not _VERSION.fullmatch(text):
        raise table.wrong(key, "a version such as 0.20")
    return text


def as_rows(levers: Iterable[Lever]) -> list[dict[str, Any]]:
    """For tables and documents: id, title, family, how it is set, values, what shows it, confounds, cost."""
    return [
        {
            "id": lever.id,
            "title": lever.title,
            "family": lever.family,
            "set": [way_words(way) for way in lever.ways],
            "values": list(lever.values),
            "suggest": list(lever.suggest),
            "shown_by": sorted({show.source for show in lever.shows}),
            "excludes": list(lever.excludes),
            "confounds": list(lever.confounds),
            "cost": lever.cost,
            "timing": lever.timing,
        }
        for lever in levers
    ]


def way_words(way: Way) -> str:
    """``--moe-backend (0.20 on)``."""
    name = "a prepared overlay" if way.kind == OVERLAY else way.name
    if way.off:
        name += f" / {way.off}"
    if way.since and way.until:
        return f"{name} ({way.since} to {way.until})"
    return name + (f" ({way.since} on)" if way.since else f" (up to {way.until})" if way.until else "")
