"""Lines of JSON objects from a file: bounded, and honest about lines that are none."""

from __future__ import annotations

import json
from typing import Any

from crashlab.errors import UnreadableInput
from crashlab.inputfile import open_regular

MAX_BYTES = 256 << 20


def read_text(path: str) -> str:
    """The file as text. Raises UnreadableInput if it cannot be read or is too large."""
    try:
        with open_regular(path, "file") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UnreadableInput(f"Cannot read {path}: {error.strerror}.") from error
    if len(data) > MAX_BYTES:
        raise UnreadableInput(f"{path} is larger than {MAX_BYTES >> 20} MiB.")
    return data.decode("utf-8", "replace")


def read_objects(path: str) -> list[dict[str, Any]]:
    """The objects, one a line. Raises UnreadableInput, naming the line, when a line is no JSON object."""
    rows = []
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        value = _parse(line)
        if not isinstance(value, dict):
            raise UnreadableInput(f"Line {number} of {path} is no JSON object.")
        rows.append(value)
    return rows


def _parse(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
