"""Files that hold the same bytes: one crash that was stored more than once is still one crash."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

_BLOCK = 1 << 16
_SAMPLES = 16
_WHOLE_LIMIT = 1 << 30
"""Files up to this size are compared whole; of larger ones only names of one file are told to be the same."""


class Copy(NamedTuple):
    """A path and the earlier one of the same content; ``same_file`` where both name one file."""

    path: str | os.PathLike[str]
    original: str | os.PathLike[str]
    same_file: bool


def distinct(
    paths: Sequence[str | os.PathLike[str]],
) -> tuple[list[str | os.PathLike[str]], list[Copy]]:
    """The paths of different content in order, and the copies among them.

    Only files of one size are looked into; what cannot be read counts as different from all else.
    """
    kept: list[str | os.PathLike[str]] = []
    copies: list[Copy] = []
    by_file: dict[object, str | os.PathLike[str]] = {}
    by_size: dict[int, list[str | os.PathLike[str]]] = {}
    for path in paths:
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            status = None
        key: object = os.fspath(path) if status is None else (status.st_dev, status.st_ino)
        if key in by_file:
            copies.append(Copy(path, by_file[key], True))
            continue
        by_file[key] = path
        if status is not None and os.path.isfile(path):
            alike = by_size.setdefault(status.st_size, [])
            original = next((other for other in alike if _same(path, other, status.st_size)), None)
            if original is not None:
                copies.append(Copy(path, original, False))
                continue
            alike.append(path)
        kept.append(path)
    return kept, copies


def _same(first: str | os.PathLike[str], second: str | os.PathLike[str], size: int) -> bool:
    """Whether two files of one size hold the same bytes; a few places first, which tell most files apart."""
    if size > _WHOLE_LIMIT:
        return False
    try:
        with open(first, "rb") as a, open(second, "rb") as b:
            for at in range(0, size, max(_BLOCK, size // _SAMPLES)):
                a.seek(at)
                b.seek(at)
                if a.read(_BLOCK) != b.read(_BLOCK):
                    return False
            a.seek(0)
            b.seek(0)
            while piece := a.read(16 * _BLOCK):
                if piece != b.read(16 * _BLOCK):
                    return False
            return not b.read(1)
    except (OSError, ValueError):
        return False
