"""Where entries come from: the bundled catalogue, folders of TOML files, installed packages.

The bundled entries are read from one compiled JSON file, because parsing some eighty TOML files costs
tens of milliseconds on every run; ``scripts/gen_signature_docs.py`` writes it and a test compares it.
"""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

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


class Skipped(NamedTuple):
    """A file (or folder, or entry point) of the user's own that cannot be used, and why."""

    path: str
    why: str

    def note(self) -> str:
        """A sentence for a report, which names the file without the folders above its own."""
        name = os.path.join(os.path.basename(os.path.dirname(self.path)), os.path.basename(self.path))
        return f"Not held against this crash: the catalogue entry {name} cannot be used: {self.why}"


def load(
    folders: Sequence[str] = (), *, plugins: bool = True, skipped: list[Skipped] | None = None
) -> tuple[Entry, ...]:
    """Bundled entries, then those of entry points, of ``$CRASHLAB_SIGNATURES`` and of ``folders``.

    Of the user's own a later entry replaces an earlier one of the same id; a bundled id is taken. What
    cannot be used goes to ``skipped`` where one is given. Raises BadEntry otherwise, and UsageError for one
    of ``folders`` that cannot be listed.
    """
    return tuple(entry.full() for entry in packed(folders, plugins=plugins, skipped=skipped))


def packed(
    folders: Sequence[str] = (), *, plugins: bool = True, skipped: list[Skipped] | None = None
) -> tuple[Entry | Card, ...]:
    """The same for matching: bundled entries stay packed. Without ``plugins`` no package is searched,
    which costs more than the matching; folders are read in any case."""
    known: dict[str, Card] = {card.id: card for card in cards()}
    own = list(_from_entry_points(skipped)) if plugins else []
    for folder in variable_folders():
        own += _usable(folder, skipped, named=False)
    for folder in folders:
        own += _usable(folder, skipped, named=True)
    entries: dict[str, Entry | Card] = dict(known)
    for path, entry in own:
        try:
            refuse_taken(entry, known.get(entry.id))
        except BadEntry as error:
            _skip(path, error, skipped)
        else:
            entries[entry.id] = entry
    return tuple(entries.values())


def unusable(environ: Mapping[str, str] | None = None) -> tuple[Skipped, ...]:
    """What the folders of ``$CRASHLAB_SIGNATURES`` hold that matching will leave out."""
    skipped: list[Skipped] = []
    known = {card.id: card for card in cards()}
    for folder in variable_folders(environ):
        for path, entry in _usable(folder, skipped, named=False):
            try:
                refuse_taken(entry, known.get(entry.id))
            except BadEntry as error:
                _skip(path, error, skipped)
    return tuple(skipped)


def refuse_taken(entry: Entry, bundled_one: Card | None) -> None:
    """BadEntry when an entry goes by the id of a bundled one and is another: readers would take it for that."""
    if bundled_one is None or _is_source(entry.source):
        return
    if entry._replace(source="bundled") != bundled_one.full():
        raise BadEntry(
            f"the id {entry.id} is taken by an entry that ships with crashlab", hint="Choose another id."
        )


def _is_source(folder: str) -> bool:
    """Whether a folder is the source of a bundled catalogue: its developers change entries under their ids."""
    place = os.path.realpath(folder)
    return os.path.basename(place) == os.path.basename(KNOWN) and os.path.isfile(
        os.path.join(os.path.dirname(place), os.path.basename(COMPILED))
    )


def load_folder(folder: str, skipped: list[Skipped] | None = None) -> tuple[Entry, ...]:
    """The entries of every ``*.toml`` directly in ``folder``; unusable ones go to ``skipped`` where it is given.

    Raises BadEntry otherwise, and UsageError for a folder that cannot be listed.
    """
    return tuple(entry for _, entry in _entries(folder, skipped))


def _usable(folder: str, skipped: list[Skipped] | None, *, named: bool) -> list[tuple[str, Entry]]:
    """Path and entry of each file. A folder that somebody ``named`` just now must exist in any case."""
    try:
        return list(_entries(folder, skipped))
    except (BadEntry, UsageError) as error:
        if named and isinstance(error, UsageError):
            raise
        _skip(folder, error, skipped)
        return []


def _entries(folder: str, skipped: list[Skipped] | None) -> Iterator[tuple[str, Entry]]:
    from crashlab.signatures.schema import entry_from

    found: dict[str, str] = {}
    for path in toml_files(folder):
        try:
            table = read_toml(path)
            try:
                entry = entry_from(table, source=folder)
            except BadEntry as error:
                raise BadEntry(f"{path}: {error}", hint=error.hint) from error
            if entry.id in found:
                raise BadEntry(f"{path}: the id {entry.id} is taken by {found[entry.id]}")
        except BadEntry as error:
            _skip(path, error, skipped)
            continue
        found[entry.id] = path
        yield path, entry


def _skip(path: str, error: BadEntry | UsageError, skipped: list[Skipped] | None) -> None:
    """Keep what is wrong with a file, or raise it where nobody keeps it."""
    if skipped is None:
        raise error
    skipped.append(Skipped(path, str(error).removeprefix(f"{path}: ")))


def variable_folders(environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The folders that ``$CRASHLAB_SIGNATURES`` names."""
    told = (os.environ if environ is None else environ).get(VARIABLE, "")
    return tuple(folder for folder in told.split(os.pathsep) if folder)


def check_folders() -> tuple[str, ...]:
    """What ``signatures check`` looks at when no folder is named: the bundled one and the variable's."""
    return (KNOWN, *variable_folders())


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


def _from_entry_points(skipped: list[Skipped] | None) -> Iterator[tuple[str, Entry]]:
    """Entries of installed packages: each entry point gives a folder, or a callable that returns one."""
    if not may_exist(ENTRY_POINTS):
        return
    from importlib.metadata import entry_points

    for point in entry_points(group=ENTRY_POINTS):
        try:
            target = point.load()
            folder = os.fspath(target() if callable(target) else target)
        except Exception as error:  # noqa: BLE001 - a stranger's package may raise anything
            broken = BadEntry(
                f"the entry point {point.name!r} ({ENTRY_POINTS}) cannot be loaded: {error}",
                hint="Update or uninstall the package that brings it.",
            )
            broken.__cause__ = error
            _skip(f"entry point {point.name}", broken, skipped)
            continue
        yield from _usable(folder, skipped, named=False)


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
