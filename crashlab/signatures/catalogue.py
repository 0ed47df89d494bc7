"""Where entries come from: the bundled catalogue, folders of TOML files, installed packages.

The bundled entries are read from one compiled JSON file, because parsing some eighty TOML files costs
tens of milliseconds on every run; ``scripts/gen_signature_docs.py`` writes it and a test compares it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from crashlab.errors import UnreadableInput, UsageError
from crashlab.inputfile import open_regular
from crashlab.inputfile import parse_toml as parse_table
from crashlab.signatures.entry import Card, Entry, to_plain
from crashlab.signatures.errors import BadEntry
from crashlab.signatures.packs import may_exist

KNOWN = os.path.join(os.path.dirname(__file__), "known")
COMPILED = os.path.join(os.path.dirname(__file__), "known.json")
ENTRY_POINTS = "crashlab.signatures"
VARIABLE = "CRASHLAB_SIGNATURES"
SCHEMA = "crashlab.signatures/1"
MAX_FILE = 1 << 20
MAX_FILES = 20_000


@lru_cache(maxsize=1)
def cards() -> tuple[Card, ...]:
    """The entries that ship with crashlab, by id, packed. Raises BadEntry if the package is damaged."""
    import json

    try:
        with open(COMPILED, encoding="utf-8") as stream:
            data = json.load(stream)
        return tuple(Card(plain) for plain in data["entries"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadEntry(
            f"the bundled catalogue cannot be read: {error}", hint="Install crashlab again."
        ) from error


def bundled() -> tuple[Entry, ...]:
    """The entries that ship with crashlab, whole. Raises BadEntry if the package is damaged."""
    return tuple(card.full() for card in cards())


def compiled(entries: Iterable[Entry]) -> str:
    """The text of the compiled catalogue, for :data:`COMPILED`: what matching needs, the rest packed."""
    import json

    rows = []
    for entry in sorted(entries, key=lambda entry: entry.id):
        plain = to_plain(entry)
        row = {key: plain.pop(key) for key in ("id", "kind", "match")}
        row["rest"] = json.dumps(plain, ensure_ascii=False)
        rows.append(json.dumps(row, ensure_ascii=False))
    body = ",\n".join(rows)
    return f'{{"schema": "{SCHEMA}", "entries": [\n{body}\n]}}\n'


def load(folders: Sequence[str] = (), *, plugins: bool = True) -> tuple[Entry, ...]:
    """Bundled entries, then those of entry points, of ``$CRASHLAB_SIGNATURES`` and of ``folders``.

    A later entry replaces an earlier one of the same id. Raises BadEntry, UsageError.
    """
    return tuple(entry.full() for entry in packed(folders, plugins=plugins))


def packed(folders: Sequence[str] = (), *, plugins: bool = True) -> tuple[Entry | Card, ...]:
    """The same for matching: bundled entries stay packed. Without ``plugins`` no package is searched,
    which costs more than the matching; folders are read in any case."""
    entries: dict[str, Entry | Card] = {card.id: card for card in cards()}
    extra = [*(_from_entry_points() if plugins else ())]
    for folder in (*os.environ.get(VARIABLE, "").split(os.pathsep), *folders):
        if folder:
            extra.extend(load_folder(folder))
    entries.update((entry.id, entry) for entry in extra)
    return tuple(entries.values())


def load_folder(folder: str) -> tuple[Entry, ...]:
    """The entries of every ``*.toml`` directly in ``folder``. Raises BadEntry, UsageError."""
    from crashlab.signatures.schema import entry_from

    found: dict[str, tuple[str, Entry]] = {}
    for path, table in read_folder(folder):
        entry = entry_from(table, source=folder)
        if entry.id in found:
            raise BadEntry(f"{path}: the id {entry.id} is taken by {found[entry.id][0]}")
        found[entry.id] = (path, entry)
    return tuple(entry for _, entry in found.values())


def check_folders() -> tuple[str, ...]:
    """What ``signatures check`` looks at when no folder is named: the bundled one and the variable's."""
    return (KNOWN, *(folder for folder in os.environ.get(VARIABLE, "").split(os.pathsep) if folder))


def read_folder(folder: str) -> list[tuple[str, dict[str, Any]]]:
    """Path and parsed TOML of each file, by name. Raises BadEntry, UsageError."""
    return [(path, read_toml(path)) for path in toml_files(folder)]


def toml_files(folder: str) -> list[str]:
    """The paths of the ``*.toml`` files directly in ``folder``, by name. Raises BadEntry, UsageError."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".toml"))
    except OSError as error:
        raise UsageError(
            f"the catalogue folder {folder} cannot be read: {error.strerror or error}",
            hint="Give a folder of .toml files; `crashlab signatures new` writes one.",
        ) from error
    if len(names) > MAX_FILES:
        raise BadEntry(f"{folder} holds more than {MAX_FILES} entries")
    return [os.path.join(folder, name) for name in names]


def read_toml(path: str) -> dict[str, Any]:
    """One parsed file. Raises BadEntry naming the file."""
    try:
        with open_regular(path, "entry") as stream:
            raw = stream.read(MAX_FILE + 1)
    except UnreadableInput as error:
        raise BadEntry(str(error), hint=error.hint) from error
    except OSError as error:
        raise BadEntry(f"{path}: {error.strerror or error}") from error
    if len(raw) > MAX_FILE:
        raise BadEntry(f"{path}: larger than {MAX_FILE >> 20} MiB")
    return parse_toml(raw.decode("utf-8", "replace"), path)


def parse_toml(content: str, where: str) -> dict[str, Any]:
    """A TOML text as a mapping. Raises BadEntry."""
    try:
        return parse_table(content)
    except ValueError as error:
        raise BadEntry(f"{where}: {error}") from error


def _from_entry_points() -> list[Entry]:
    """Entries of installed packages: each entry point gives a folder, or a callable that returns one."""
    if not may_exist(ENTRY_POINTS):
        return []
    from importlib.metadata import entry_points

    entries: list[Entry] = []
    for point in entry_points(group=ENTRY_POINTS):
        try:
            target = point.load()
            folder = os.fspath(target() if callable(target) else target)
        except Exception as error:  # a stranger's package may raise anything
            raise BadEntry(
                f"the entry point {point.name!r} ({ENTRY_POINTS}) cannot be loaded: {error}",
                hint="Update or uninstall the package that brings it.",
            ) from error
        entries.extend(load_folder(folder))
    return entries


def find(entries: Sequence[Entry], name: str) -> Entry:
    """The entry with this id, case ignored. Raises UsageError with the nearest ids."""
    from difflib import get_close_matches

    by_id: Mapping[str, Entry] = {entry.id: entry for entry in entries}
    if name.upper() in by_id:
        return by_id[name.upper()]
    near = get_close_matches(name.upper()[:64], list(by_id), n=3, cutoff=0.4)
    raise UsageError(
        f"there is no signature {name[:64]!r}",
        hint=f"Nearest: {', '.join(near)}." if near else "See `crashlab signatures list`.",
    )
