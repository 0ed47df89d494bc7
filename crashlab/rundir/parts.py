"""The parts of a log that was written in several files, and what of it is missing."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Any, NamedTuple

from crashlab.rundir.lines import json_lines


class Part(NamedTuple):
    """A file that holds the log from byte ``start`` on."""

    path: str
    start: int
    bytes: int


def part_name(name: str, start: int) -> str:
    """``requests.jsonl`` for the first part, ``requests.+2097152.jsonl`` for the one from that byte on."""
    if start == 0:
        return name
    stem, extension = os.path.splitext(name)
    return f"{stem}.+{start}{extension}"


def parts_of(folder: str, name: str) -> list[Part]:
    """In their order; empty if there is no such log."""
    stem, extension = os.path.splitext(name)
    found = []
    try:
        names = os.listdir(folder)
    except (OSError, ValueError):
        return []
    for one in names:
        if one == name:
            start = 0
        elif one.startswith(f"{stem}.+") and one.endswith(extension):
            digits = one[len(stem) + 2 : len(one) - len(extension)]
            if not (digits.isascii() and digits.isdigit() and len(digits) <= 18):
                continue
            start = int(digits)
        else:
            continue
        path = os.path.join(folder, one)
        try:
            status = os.lstat(path)
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            found.append(Part(path, start, status.st_size))
    return sorted(found, key=lambda part: part.start)


def part_lines(folder: str, name: str, problems: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """The records of all parts in their order; a log that is not there is a problem."""
    found = parts_of(folder, name)
    for path in [part.path for part in found] or [os.path.join(folder, name)]:
        yield from json_lines(path, problems)


def gaps(folder: str, name: str) -> tuple[str, ...]:
    """Sentences about parts that were dropped to bound the log."""
    told, at = [], 0
    for part in parts_of(folder, name):
        if part.start > at:
            told.append(
                f"{part.start - at:,} bytes of {name} from byte {at:,} on were dropped to bound its size."
            )
        at = max(at, part.start + part.bytes)
    return tuple(told)
