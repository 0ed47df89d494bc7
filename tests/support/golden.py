"""Compare output with a recorded file; ``pytest --update-golden`` records it anew."""

from __future__ import annotations

import difflib
import json
import lzma
import re
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).resolve().parent.parent / "golden"


def check(name: str, actual: str, *, update: bool) -> None:
    """Fail with a diff when ``actual`` is not what ``tests/golden/NAME`` holds; ``NAME.xz`` is compressed."""
    target = GOLDEN / name
    if update:
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or _read(target) != actual:
            target.write_bytes(_packed(actual) if target.suffix == ".xz" else actual.encode())
        return
    expected = _read(target) if target.exists() else ""
    if actual != expected:
        diff = "\n".join(
            difflib.unified_diff(
                expected.splitlines(), actual.splitlines(), f"golden/{name}", "now", lineterm="", n=2
            )
        )
        raise AssertionError(
            f"output differs from its golden file (pytest --update-golden records it):\n{diff[:8000]}"
        )


def _read(target: Path) -> str:
    raw = target.read_bytes()
    return (lzma.decompress(raw) if target.suffix == ".xz" else raw).decode()


def _packed(text: str) -> bytes:
    return lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)


def stable_json(text: str) -> str:
    """A report without what changes from run to run: times, durations, versions of tools."""
    return json.dumps(_stable(json.loads(text)), indent=1, ensure_ascii=False) + "\n"


def _stable(value: Any) -> Any:
    if isinstance(value, dict):
        out = {}
        for key, item in value.items():
            if key in ("created", "ms"):
                item = None if item is None else f"<{key}>"
            elif key == "tool":
                item = {"name": item["name"], "version": "<version>"}
            out[key] = _stable(item)
        if "status" in out and "version" in out and "argv" in out:
            out["version"] = None if out["version"] is None else "<version>"
        return out
    if isinstance(value, list):
        return [_stable(item) for item in value]
    return value


def stable_text(text: str) -> str:
    """Text output without durations and versions."""
    return re.sub(r"\b\d+ ms\b", "<ms>", text)
