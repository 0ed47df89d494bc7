"""Transcripts that real cuda-gdb printed over the real dumps, and what is known of those dumps."""

from __future__ import annotations

import json
import tarfile
from functools import lru_cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parents[2] / "data" / "debugger"
SETS = (
    "cuda-gdb-12.4",
    "cuda-gdb-12.4-no-disassembler",
    "cuda-gdb-13.0",
    "cuda-gdb-13.0-by-hand",
)


@lru_cache(maxsize=8)
def transcripts(name: str) -> dict[str, str]:
    """Dump name → transcript, of one set."""
    out = {}
    with tarfile.open(DATA / f"{name}.tar.xz") as archive:
        for member in archive.getmembers():
            stream = archive.extractfile(member) if member.isfile() else None
            if stream is not None:
                out[Path(member.name).stem] = stream.read().decode()
    return out


@lru_cache(maxsize=1)
def expected() -> dict[str, dict[str, Any]]:
    """Dump name → what is true of it."""
    found: dict[str, dict[str, Any]] = json.loads((DATA / "expected.json").read_text())
    return found


def cases(*sets: str) -> list[tuple[str, str]]:
    """(set, dump) pairs for parametrising."""
    return [(one, dump) for one in (sets or SETS) for dump in transcripts(one)]
