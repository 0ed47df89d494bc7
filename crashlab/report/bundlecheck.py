"""Look into a bundle before it leaves the machine: what is in it, is it whole, does anything look private?"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

from crashlab.errors import UnreadableInput
from crashlab.inputfile import open_regular
from crashlab.report.bundle import SCHEMA
from crashlab.report.redact import leftovers

_FILES, _SIZE = 5000, 64 << 20
_PART = 32 << 20
_TOTAL, _TEXTS = 8 << 30, 1 << 30
"""All files of all parts, unpacked, and those of them that are searched, at about 2 MB a second."""
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OverflowError,
)
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
    """Read all parts of a bundle. Raises UnreadableInput when the first is no bundle.

    Files are looked at one after the other and not kept; what a bundle of ours cannot be (too large, other
    packing) is refused, so that a made-up zip costs neither memory nor hours.
    """
    open_regular(path, "bundle").close()
    parts = [path, *(p for n in range(2, 1000) if (p := path.with_suffix(f".part{n}.zip")).exists())]
    looked: dict[str, _Looked] = {}
    room = _Room(_TOTAL, _TEXTS)
    for part in parts:
        for one in _read(part, _FILES - len(looked), room):
            if one.name in looked:
                raise UnreadableInput(f"{part.name} holds a name twice: which is meant?", hint=_HINT)
            looked[one.name] = one
    manifest = _manifest(looked.get("manifest.json"))
    listed = {str(f.get("path")): f for f in manifest.get("files", []) if isinstance(f, dict)}
    items = [_item(one, listed.get(name)) for name, one in sorted(looked.items())]
    stays = [
        (str(item.get("name")), str(item.get("why")))
        for item in manifest.get("left_out", [])
        if isinstance(item, dict)
    ]
    missing = tuple(sorted(set(listed) - set(looked)))
    return Check(tuple(parts), tuple(items), missing, tuple(stays))


class _Looked(NamedTuple):
    """What is remembered of a file; ``data`` only of the manifest."""

    name: str
    part: str
    size: int
    sha256: str
    suspicious: dict[str, int]
    data: bytes | None


class _Room:
    """Bytes that may still be unpacked, and how many of them may be text, which is searched."""

    def __init__(self, all_bytes: int, text: int) -> None:
        self._all, self._text = all_bytes, text

    def most(self, is_text: bool) -> int:
        """For one file."""
        return min(_SIZE, self._all, self._text if is_text else self._all)

    def take(self, size: int, is_text: bool) -> None:
        """One file was read."""
        self._all -= size
        self._text -= size if is_text else 0


def _read(path: Path, count: int, room: _Room) -> Iterator[_Looked]:
    try:
        with open_regular(path, "bundle") as file:
            if os.fstat(file.fileno()).st_size > _PART:
                raise UnreadableInput(f"{path.name} is larger than a part of a bundle can be.", hint=_HINT)
            with zipfile.ZipFile(file) as archive:
                for info in archive.infolist()[: max(0, count)]:
                    yield _look(archive, info, path.name, room)
    except _ZIP_ERRORS as error:
        raise UnreadableInput(f"{path.name} is no readable zip file: {error}.", hint=_HINT) from error
    except OSError as error:
        raise UnreadableInput(f"Cannot read {path.name}: {error.strerror or error}.", hint=_HINT) from error


def _look(archive: zipfile.ZipFile, info: zipfile.ZipInfo, part: str, room: _Room) -> _Looked:
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise UnreadableInput(f"{part} is packed as crashlab never packs.", hint=_HINT)
    name = info.filename
    stem = name[:-4] if name[-4:-3] == "." and name[-3:].isdigit() else name
    is_text = stem.endswith(_TEXT) and name not in ("manifest.json", "README.txt")
    most = room.most(is_text)
    with archive.open(info) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise UnreadableInput(f"{part} unpacks to more than a bundle can hold.", hint=_HINT)
    room.take(len(data), is_text)
    suspicious = {}
    if is_text:
        text = data.decode("utf-8", "replace")
        suspicious = leftovers(unescape(text) if stem.endswith(_MARKUP) else text)
    kept = data if name == "manifest.json" else None
    return _Looked(name, part, len(data), hashlib.sha256(data).hexdigest(), suspicious, kept)


def _manifest(found: _Looked | None) -> dict[str, Any]:
    try:
        value = json.loads(found.data) if found is not None and found.data is not None else None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        raise UnreadableInput("This zip has no manifest of a crashlab bundle.", hint=_HINT)
    return {**value, **{k: [] for k in ("files", "left_out") if not isinstance(value.get(k), list)}}


def _item(one: _Looked, listed: dict[str, Any] | None) -> Item:
    whole = None
    taken: dict[str, int] = {}
    if listed is not None:
        whole = one.sha256 == listed.get("sha256")
        raw = listed.get("taken_out")
        taken = {str(k): v for k, v in raw.items() if isinstance(v, int)} if isinstance(raw, dict) else {}
    return Item(one.name, one.part, one.size, taken, whole, one.suspicious)
