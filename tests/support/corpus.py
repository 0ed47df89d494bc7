"""The real dumps shipped with the tests, unpacked once a session into a folder of their own."""

from __future__ import annotations

import json
import lzma
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent.parent / "data"
DUMPS = DATA / "dumps"


@lru_cache(maxsize=1)
def manifest() -> dict[str, dict[str, Any]]:
    """What is known of each dump, by name."""
    return {entry["name"]: entry for entry in json.loads((DUMPS / "manifest.json").read_text())}


@lru_cache(maxsize=1)
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="crashlab-test-dumps-")


@lru_cache(maxsize=64)
def raw(name: str) -> bytes:
    """A dump's bytes."""
    return lzma.decompress((DUMPS / f"{name}.core.xz").read_bytes())


@lru_cache(maxsize=64)
def path(name: str) -> Path:
    """A dump as a plain file."""
    target = Path(_folder().name) / f"{name}.core"
    target.write_bytes(raw(name))
    return target


def names(*, readable: bool = True) -> list[str]:
    """All dump names, those of readable dumps by default."""
    return [n for n, e in manifest().items() if not readable or e["expect"]["kind"] != "unreadable"]


CORE = (
    "assert", "badpc", "barrier_hang", "cut_short", "deep", "graph", "graph_full", "hang", "many", "misaligned",
    "misaligned_shared", "multi", "oob_load", "oob_load_debug", "oob_load_nolineinfo", "oob_store",
    "oob_store_nolineinfo", "seed_sm120", "shared_oob", "shared_oob_debug", "shared_oob_full", "shared_oob_nolineinfo",
    "stack", "tma", "torch_gather", "torch_triton", "trap", "two_devices",
)  # fmt: skip
"""Names of the dumps that golden files are kept for: each of these has a shape of its own."""

SMALL = ("oob_load", "oob_store", "shared_oob", "stack", "hang", "tma", "seed_sm120", "graph_full")
"""A handful with distinct shapes, for tests that repeat something over dumps."""
