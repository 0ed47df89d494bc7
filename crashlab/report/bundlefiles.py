"""Which files of a run directory may go into a bundle, and how each kind is made fit for it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from crashlab.errors import UnreadableInput
from crashlab.inputfile import open_regular
from crashlab.report import prompts
from crashlab.report.redact import Redactor
from crashlab.report.safe import one_line

_DEPTH, _FILES = 4, 2000
_HEAD, _TAIL = 8 << 20, 48 << 20
_LINE = 1 << 20
_ALL_TEXT = 512 << 20
_DUMPS = (".nvcudmp", ".core", ".core.xz", ".nvcudmp.xz", ".core.gz", ".nvcudmp.gz")
_TEXTS = (".log", ".txt", ".out", ".err", ".prom")
_GENERATED = ("report.json", "report.html", "report.md", "report.txt", "junit.xml")


class Found(NamedTuple):
    """A file of the run directory. ``kind``: log, records, jsonl, json, dump, or None with ``why`` it stays."""

    path: Path
    name: str
    kind: str | None
    why: str | None = None


def find(folder: Path) -> Iterator[Found]:
    """Every file below a run directory, sorted by name; links are not followed."""
    count = 0
    for root, folders, files in os.walk(folder, followlinks=False):
        here = Path(root)
        depth = len(here.relative_to(folder).parts)
        folders[:] = sorted(folders) if depth < _DEPTH else []
        for name in sorted(files):
            count += 1
            if count > _FILES:
                return
            path = here / name
            yield _classify(path, str(path.relative_to(folder)))


def _classify(path: Path, name: str) -> Found:
    lower = path.name.lower()
    if path.is_symlink() or not path.is_file():
        return Found(path, name, None, "no plain file")
    if lower in _GENERATED:
        return Found(path, name, None, "written anew from the report")
    if lower.endswith(_DUMPS):
        return Found(path, name, "dump")
    if lower.endswith(".jsonl"):
        return Found(path, name, "records" if "request" in lower else "jsonl")
    if lower.endswith(".json"):
        return Found(path, name, "json")
    if lower.endswith(_TEXTS) or lower.startswith(("stdout", "stderr", "dmesg", "driver", "metrics")):
        return Found(path, name, "log")
    return Found(path, name, None, "not a kind of file that is known to be safe")


def read_all(folder: Path) -> tuple[list[Found], dict[str, str]]:
    """All files of a run directory, and the text of those that are text, by name.

    What cannot be read, or goes beyond all the text that a bundle takes, stays, with the reason.
    """
    found, texts, room = [], {}, _ALL_TEXT
    for item in find(folder):
        if item.kind and item.kind != "dump":
            try:
                text = raw_text(item.path) if room > 0 else None
            except (OSError, UnreadableInput) as error:
                item = item._replace(
                    kind=None, why=f"cannot be read: {getattr(error, 'strerror', None) or error}"
                )
            else:
                if text is None:
                    item = item._replace(
                        kind=None, why=f"the bundle holds {_ALL_TEXT >> 20} MiB of text already"
                    )
                else:
                    texts[item.name] = text
                    room -= len(text)
        found.append(item)
    return found, texts


def raw_text(path: Path) -> str:
    """A text file, at most its first 8 MiB and last 48 MiB; what is between is named, not kept."""
    with open_regular(path, "file", follow=False) as file:
        size = os.fstat(file.fileno()).st_size
        if size <= _HEAD + _TAIL:
            data = file.read(_HEAD + _TAIL)
            return data.decode("utf-8", "replace")
        head = file.read(_HEAD)
        file.seek(size - _TAIL)
        tail = file.read(_TAIL)
    gap = f"\n[{size - _HEAD - _TAIL:,} bytes in the middle were left out of the bundle]\n"
    return head.decode("utf-8", "replace") + gap + tail.decode("utf-8", "replace")


def cleaned(found: Found, text: str, redactor: Redactor) -> bytes:
    """The redacted content of a log, record or JSON file."""
    lines: Iterator[str]
    if found.kind == "records":
        lines = (_record(line, redactor) for line in text.splitlines() if line.strip())
    elif found.kind == "json":
        lines = iter([_json(text, redactor)])
    else:
        # Escape codes of a server's log must not act on the terminal of whoever reads the bundle.
        shown = (one_line(line.replace("\t", "    "), _LINE) for line in text.splitlines())
        lines = redactor.log(shown)
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def _record(line: str, redactor: Redactor) -> str:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return '{"removed": "a line that is no JSON"}'
    return redactor.json(prompts.record_without_words(row))


def _json(text: str, redactor: Redactor) -> str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return "\n".join(redactor.log(text.splitlines()))
    return redactor.json(value)
