"""Mutations that keep the form: JSON values, several files in one case, zip archives, HTTP answers."""

from __future__ import annotations

import io
import json
import random
import warnings
import zipfile
from collections.abc import Mapping
from typing import Any

from tests.support.fuzz import blindly

_DEEP: Any = None
for _ in range(200):
    _DEEP = [_DEEP]
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**64, 10**400, -(10**400), 0.5, 1e308, float("nan"), float("inf"), "",
    "x", [], {}, [[]], {"": ""}, [None] * 40, _DEEP, "0x10", "0x" + "f" * 60, [1, 2, 3], [10**400, 0, 0], ["a"],
    {"a": {"b": [1]}},
)  # fmt: skip
_MARK = b"\x00file "


def nasty(rng: random.Random) -> Any:
    """A JSON value that nobody expects here."""
    if rng.random() < 0.3:
        return rng.choice(blindly.STRINGS)
    return rng.choice(_VALUES)


def change(value: Any, rng: random.Random) -> Any:
    """A copy in which one to four places were changed, dropped, doubled or exchanged."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        value = _change_once(value, rng)
    return value


def _change_once(value: Any, rng: random.Random) -> Any:
    if rng.random() < 0.1 or not isinstance(value, (dict, list)) or not value:
        return nasty(rng)
    if isinstance(value, dict):
        copy = dict(value)
        key = rng.choice(list(copy))
        what = rng.random()
        if what < 0.1:
            del copy[key]
        elif what < 0.2:
            copy[rng.choice(list(copy)) if rng.random() < 0.7 else rng.choice(blindly.STRINGS)] = copy[key]
        else:
            copy[key] = _change_once(copy[key], rng) if rng.random() < 0.85 else nasty(rng)
        return copy
    items = list(value)
    at = rng.randrange(len(items))
    what = rng.random()
    if what < 0.1:
        del items[at]
    elif what < 0.2:
        items[at:at] = [items[at]] * rng.choice((1, 2, 200))
    else:
        items[at] = _change_once(items[at], rng) if rng.random() < 0.85 else nasty(rng)
    return items


def change_json(data: bytes, rng: random.Random) -> bytes:
    """JSON text with changed values; what is no JSON comes back as it is."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return data
    return blindly.encode(json.dumps(change(value, rng), ensure_ascii=rng.random() < 0.5))


def change_json_lines(data: bytes, rng: random.Random, pool: blindly.Pool) -> bytes:
    """JSON lines of which some have changed values, some are damaged as text."""
    lines = data.split(b"\n")
    for _ in range(rng.choice((1, 2, 6))):
        at = rng.randrange(len(lines))
        lines[at] = change_json(lines[at], rng)
    out = b"\n".join(lines)
    return blindly.damage_text(out, rng, pool) if rng.random() < 0.3 else out


def join_files(files: Mapping[str, bytes]) -> bytes:
    """Several files as one case, so that it can be stored and made smaller like any other."""
    return b"".join(
        _MARK + blindly.encode(name).replace(b"\n", b"") + b"\n" + data for name, data in files.items()
    )


def split_files(case: bytes) -> dict[str, bytes]:
    """The inverse, also of a case that was made smaller. Names cannot lead out of a folder."""
    out = {}
    for part in case.split(_MARK)[1:]:
        head, _, data = part.partition(b"\n")
        parts = head.decode("utf-8", "replace").replace("\0", "").split("/")
        name = "/".join(one[:80] for one in parts[:4] if one not in ("", ".", ".."))
        if name:
            out[name] = data
    return out


_ZIP_NAMES = (
    "../x.txt",
    "/etc/x",
    "C:\\x",
    "a/" * 400 + "x",
    "",
    "x\0y",
    "\x1b[2J",
    "manifest.json",
    "raw/x.log.000",
)


def make_zip(files: Mapping[str, bytes], rng: random.Random) -> bytes:
    """A zip of these files with some names and methods that nobody expects, sometimes lying about sizes."""
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w") as archive:
        warnings.simplefilter("ignore")  # the same name twice is wanted here
        for name, data in files.items():
            if rng.random() < 0.1:
                name = rng.choice((*_ZIP_NAMES, *blindly.STRINGS)).encode("utf-8", "replace").decode()[:60000]
            method = rng.choice(
                (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
            )
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.compress_type = method
            archive.writestr(info, data * (200 if rng.random() < 0.02 else 1))
    return out.getvalue()
