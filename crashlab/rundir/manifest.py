"""What a finished run directory holds: every file with its size and hash."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import Any

from crashlab.errors import UnreadableInput
from crashlab.inputfile import open_regular
from crashlab.rundir import layout

HASH_LIMIT = 256 << 20
"""Larger files (full dumps) get no hash: reading 100 GiB again would take minutes."""


def build_manifest(path: str) -> dict[str, Any]:
    """``{"schema", "files": [{"path", "bytes", "sha256"}]}``; ``sha256`` is null where it was not taken."""
    files = []
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            full = os.path.join(folder, name)
            short = os.path.relpath(full, path)
            if short in (layout.MANIFEST, layout.RESERVE):
                continue
            try:
                found = os.lstat(full)
            except OSError:
                continue
            if stat.S_ISREG(found.st_mode):
                files.append({"path": short, "bytes": found.st_size, "sha256": _hash(full, found.st_size)})
    return {"schema": layout.SCHEMA, "files": files}


def _hash(path: str, size: int) -> str | None:
    if size > HASH_LIMIT:
        return None
    digest = hashlib.sha256()
    try:
        with open_regular(path, "file", follow=False) as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    except (OSError, UnreadableInput):
        return None
    return digest.hexdigest()
