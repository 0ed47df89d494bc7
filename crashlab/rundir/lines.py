"""JSON lines, read back from files that may be torn."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from crashlab.errors import UnreadableInput
from crashlab.inputfile import open_regular

_MAX_LINE = 1 << 20
_MAX_LINES = 500_000
_MAX_BYTES = 256 << 20


def json_lines(path: str, problems: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """The records of a JSONL file; lines that are torn or no objects are counted, not raised.

    A symbolic link is not followed: run directories are handed around.
    """
    bad = size = 0
    try:
        with open_regular(path, "record", follow=False) as file:
            for number in range(_MAX_LINES):
                line = file.readline(_MAX_LINE)
                if not line:
                    break
                size += len(line)
                if size > _MAX_BYTES:
                    if problems is not None:
                        problems.append(
                            f"{os.path.basename(path)} is longer than {_MAX_BYTES >> 20} MiB; the rest was not read."
                        )
                    break
                record = json_object(line)
                if record is not None:
                    yield record
                elif line.strip():
                    bad += 1
                if number == _MAX_LINES - 1 and problems is not None:
                    problems.append(
                        f"{os.path.basename(path)} is longer than {_MAX_LINES} lines; the rest was not read."
                    )
    except (OSError, UnreadableInput) as error:
        if problems is not None:
            problems.append(
                f"{os.path.basename(path)} cannot be read: {getattr(error, 'strerror', None) or error}."
            )
        return
    if bad and problems is not None:
        problems.append(f"{os.path.basename(path)}: {bad} line(s) were torn and could not be read.")


def json_object(line: bytes) -> dict[str, Any] | None:
    """A JSON object out of its bytes, None if it is none."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def finite(value: object) -> float | None:
    """A number of a record as a float; None for anything else, NaN, infinities and what is too large for one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if -1e300 < value < 1e300 else None
