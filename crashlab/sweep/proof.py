"""Did a lever take? Read from what the server said, never from what it was told."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from crashlab.sweep.facts import Effective
from crashlab.sweep.lever import (
    CONFIG,
    ENVIRONMENT,
    LIBRARY,
    LOG,
    SERVER_INFO,
    UNSET,
    VARIABLE,
    Lever,
    Show,
    Way,
)

_CONFIG_LINES = ("with config", "non-default args")
_LINE = 65536
UNKNOWN_VARIABLE = "Unknown vLLM environment variable detected: {name}(?![A-Z0-9_])"
"""vLLM warns and goes on: such an arm would be a second baseline under another name."""


class Witness(NamedTuple):
    """What there is to read. ``server_info`` None: not asked or not there. ``libraries``: of the report's
    environment. ``environment``: as the server was started with it."""

    lines: tuple[str, ...] = ()
    server_info: Mapping[str, Any] | None = None
    libraries: Mapping[str, str] = {}
    environment: Mapping[str, str] = {}


def verify(lever: Lever, way: Way, requested: str | None, given: bool, witness: Witness) -> Effective:
    """``requested`` None: it was left unset. ``given``: command line or environment sets it all the same.

    ``took`` is True or False when something shows it, None when nothing does.
    """
    denial = _denied(lever, way, witness.lines)
    if denial is not None and requested is not None:
        return Effective(lever.id, None, f"log: {denial[:300]}", False)
    value, source, show = _read(lever.shows, way, requested, witness)
    if requested is None:
        return Effective(lever.id, value, source or "command line and environment", not given)
    if value is None or show is None:
        return Effective(lever.id, None, None, None)
    wanted = show.means.get(requested, show.means.get("*", requested))
    return Effective(lever.id, value, source, _same(wanted, value, show))


def observed(lever: Lever, way: Way, witness: Witness) -> Effective:
    """What a lever was that the arm does not name; ``took`` None: nothing was asked for."""
    value, source, _ = _read(lever.shows, way, None, witness)
    return Effective(lever.id, value, source, None)


def _denied(lever: Lever, way: Way, lines: Iterable[str]) -> str | None:
    patterns = list(lever.denies)
    if way.kind == VARIABLE:
        patterns.append(UNKNOWN_VARIABLE)
    if not way.name or not patterns:
        return None
    compiled = [re.compile(one.replace("{name}", re.escape(way.name))) for one in patterns]
    return next((line for line in lines if any(one.search(line) for one in compiled)), None)


def _read(
    shows: Iterable[Show], way: Way, requested: str | None, witness: Witness
) -> tuple[str | None, str | None, Show | None]:
    """(effective value, where it was read, the rule): the first rule that reads anything decides."""
    for show in shows:
        if show.only and (requested or UNSET) not in show.only:
            continue
        value, source = _READERS[show.source](show, way, witness)
        if value is not None:
            return value, source, show
    return None, None, None


def _from_lines(show: Show, way: Way, witness: Witness) -> tuple[str | None, str]:
    """The last line that matches: a later one overrides."""
    pattern = re.compile((show.read or "").replace("{name}", re.escape(way.name)))
    for line in reversed(witness.lines):
        if show.source == CONFIG and not any(mark in line for mark in _CONFIG_LINES):
            continue
        if (found := pattern.search(line)) is not None:
            return found.group(1), f"{show.source}: {found.group(0)[:200]}"
    return None, ""


def _from_server_info(show: Show, way: Way, witness: Witness) -> tuple[str | None, str]:
    value: Any = witness.server_info
    for part in (show.path or "").split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if value is None or isinstance(value, (dict, list)):
        return None, ""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text, f"/server_info: {show.path}"


def _from_libraries(show: Show, way: Way, witness: Witness) -> tuple[str | None, str]:
    return witness.libraries.get(show.library or ""), f"loaded: {show.library}"


def _from_environment(show: Show, way: Way, witness: Witness) -> tuple[str | None, str]:
    """Only that it was set: whoever reads the variable does not say so. The weakest of all."""
    value = witness.environment.get(way.name) if way.kind == VARIABLE else None
    return value, f"environment of the process; its reader does not say whether it heeded {way.name}"


_READERS = {
    LOG: _from_lines,
    CONFIG: _from_lines,
    SERVER_INFO: _from_server_info,
    LIBRARY: _from_libraries,
    ENVIRONMENT: _from_environment,
}


def _same(wanted: str, found: str, show: Show) -> bool:
    left, right = _plain(wanted), _plain(found)
    if left == right or (show.begins and right.startswith(left)):
        return True
    return show.source == LIBRARY and right.startswith(f"{left}.")


def _plain(text: str) -> str:
    return re.sub(r"[\s'\"_-]", "", text).lower()


def text_lines(raw: bytes) -> tuple[str, ...]:
    """Recorded output as lines, each bounded."""
    return tuple(line[:_LINE] for line in raw.decode("utf-8", "replace").splitlines())
