"""The release of an nvdisasm, by its own word."""

from __future__ import annotations

import re

from crashlab.errors import ToolFailed
from crashlab.sass.process import Child

_VERSION = re.compile(r"\bV(\d+(?:\.\d+)+)")
_TAIL = 200


def version_of(path: str, timeout: float = 10.0) -> str | None:
    """``13.5.37``; None when the program answers without a version. Raises MissingTool or ToolFailed."""
    child = Child((path, "--version"), max_output=1 << 16)
    code, out, err = child.collect(timeout)
    if code != 0:
        raise ToolFailed(f"nvdisasm --version ended with {code}: {tail(err or out)}")
    found = _VERSION.search(out)
    return found[1] if found else None


def tail(text: str) -> str:
    """The last line of what a program printed."""
    lines = text.strip().splitlines()
    return lines[-1][:_TAIL] if lines else "no output"
