"""What a cuda-gdb version can read: chips, and dumps of which drivers."""

from __future__ import annotations

import re

from crashlab.sass.releases import Version, first_version_for, has_dropped

__all__ = ["Version", "cuda_of_driver", "first_version_for", "has_dropped", "parse_version", "spell"]

_VERSION = re.compile(r"(?:cuda-gdb|CUDA Debugger)\s{1,8}(\d{1,2})\.(\d{1,3})")
_RELEASE = re.compile(r"(?m)^\s{0,8}(\d{1,2})\.(\d{1,3}) release")

_CUDA_OF_DRIVER: tuple[tuple[int, Version], ...] = (
    # First driver branch → the CUDA release it belongs to (CUDA toolkit release notes, table 3).
    (450, (11, 0)),
    (455, (11, 1)),
    (460, (11, 2)),
    (465, (11, 3)),
    (470, (11, 4)),
    (495, (11, 5)),
    (510, (11, 6)),
    (515, (11, 7)),
    (520, (11, 8)),
    (525, (12, 0)),
    (530, (12, 1)),
    (535, (12, 2)),
    (545, (12, 3)),
    (550, (12, 4)),
    (555, (12, 5)),
    (560, (12, 6)),
    (565, (12, 7)),
    (570, (12, 8)),
    (575, (12, 9)),
    (580, (13, 0)),
    (590, (13, 1)),
)


def parse_version(text: str) -> Version | None:
    """``NVIDIA (R) cuda-gdb 12.4`` → (12, 4); 11.x says ``NVIDIA (R) CUDA Debugger``, ``11.8 release``."""
    match = _VERSION.search(text) or (_RELEASE.search(text) if "CUDA Debugger" in text else None)
    return (int(match[1]), int(match[2])) if match else None


def cuda_of_driver(driver: tuple[int, ...]) -> Version | None:
    """The CUDA release of a driver, ``(580, 159)`` → ``(13, 0)``; None for branches older than the table.

    A branch newer than the table counts as the newest one in it: it is at least that.
    """
    known = [cuda for first, cuda in _CUDA_OF_DRIVER if driver and driver[0] >= first]
    return known[-1] if known else None


def spell(version: Version | None) -> str | None:
    """(12, 4) → ``12.4``."""
    return ".".join(map(str, version)) if version else None
