"""Look into a bundle before it leaves the machine: what is in it, is it whole, does anything look private?"""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

from crashlab.errors import UnreadableInput
from crashlab.inputfile import open_regular
from crashlab.report.bundle import SCHEMA
from crashlab.report.redact import leftovers

_FILES, _SIZE = 5000, 64 << 20
_TEXT = (".txt", ".json", ".jsonl", ".md", ".xml", ".html", ".log", ".out", ".err", ".prom")
_MARKUP = (".xml", ".html")
_HINT = "Give the first part of a bundle that 'crashlab bundle' wrote."


class Item(NamedTuple):
    """One file. ``whole`` False: its hash is not the manifest's; ``suspicious``: what the rules still find."""

    name: str
    part: str
    size: int
    taken_out: dict[str, int]
    whole: bool | None
    suspicious: dict[str, int]


class Check(NamedTuple):
    """What a bundle holds; ``missing`` are files of the manifest that no part has."""

    parts: tuple[Path, ...]
    items: tuple[Item, ...]
    missing: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]

    @property
    def good(self) -> bool:
        """Whole, and nothing looks private."""
        return not self.missing and all(i.whole is not False and not i.suspicious for i in self.items)


def check(path: Path) -> Check:
    """Read all parts of a bundle. Raises UnreadableInput when the first is no bundle."""
    open_regular(path, "bundle").close()
    parts = [path, *(p for n in range(2, 1000) if (p := path.with_suffix(f".part{n}.zip")).exists())]
    contents: dict[str, tuple[Path, bytes]] = {}
    for part in parts:
        contents.update(_read(part, _FILES - len(contents)))
    manifest = _manifest(contents.get("manifest.json"))
    listed = {str(f.get("path")): f for f in manifest.get("files", []) if isinstance(f, dict)}
    items = [_item(name, part, data, listed.get(name)) for name, (part, data) in sorted(contents.items())]
    left = [
        (str(item.get("name")), str(item.get("why")))
        for item in manifest.get("left_out", [])
        if isinstance(item, dict)
    ]
    missing = tuple(sorted(set(listed) - set(contents)))
    return Check(tuple(parts), tuple(items), missing, tuple(left))


def _read(path: Path, room: int) -> dict[str, tuple[Path, bytes]]:
    out = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist()[: max(0, room)]:
                with archive.open(info) as file:
                    data = file.read(_SIZE + 1)
                if len(data) > _SIZE:
                    raise UnreadableInput(f"{path.name} holds a file above {_SIZE:,} bytes.", hint=_HINT)
                out[info.filename] = (path, data)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise UnreadableInput(f"{path.name} is no readable zip file: {error}.", hint=_HINT) from error
    except OSError as error:
        raise UnreadableInput(f"Cannot read {path.name}: {error.strerror or error}.", hint=_HINT) from error
    return out


def _manifest(found: tuple[Path, bytes] | None) -> dict[str, Any]:
    try:
        value = json.loads(found[1]) if found else None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        raise UnreadableInput("This zip has no manifest of a crashlab bundle.", hint=_HINT)
    return {**value, **{k: [] for k in ("files", "left_out") if not isinstance(value.get(k), list)}}


def _item(name: str, part: Path, data: bytes, listed: dict[str, Any] | None) -> Item:
    whole = None
    taken: dict[str, int] = {}
    if listed is not None:
        whole = hashlib.sha256(data).hexdigest() == listed.get("sha256")
        raw = listed.get("taken_out")
        taken = {str(k): v for k, v in raw.items() if isinstance(v, int)} if isinstance(raw, dict) else {}
    suspicious = {}
    stem = name[:-4] if name[-4:-3] == "." and name[-3:].isdigit() else name
    if stem.endswith(_TEXT) and name not in ("manifest.json", "README.txt"):
        text = data.decode("utf-8", "replace")
        suspicious = leftovers(unescape(text) if stem.endswith(_MARKUP) else text)
    return Item(name, part.name, len(data), taken, whole, suspicious)
