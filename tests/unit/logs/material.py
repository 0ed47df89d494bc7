"""The recorded logs of this room, and results as plain JSON."""

from __future__ import annotations

import json
import lzma
from functools import lru_cache
from pathlib import Path
from typing import Any

from crashlab.facts import Hex

DATA = Path(__file__).resolve().parents[2] / "data" / "logs"


@lru_cache(maxsize=64)
def recorded(name: str) -> bytes:
    """A recorded log, unpacked."""
    path = DATA / name
    return lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()


def text(name: str) -> str:
    """A recorded log as text."""
    return recorded(name).decode()


def plain(value: Any) -> Any:
    """Named tuples as objects, addresses as hex strings, empty parts left out."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items() if v is not None and v != () and v != {}}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, frozenset):
        return sorted(value)
    return str(value) if isinstance(value, Hex) else value


def as_json(value: Any) -> str:
    """The text of a golden file."""
    return json.dumps(plain(value), indent=1, ensure_ascii=False) + "\n"
