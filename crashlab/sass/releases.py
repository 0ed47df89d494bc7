"""Which CUDA release knows which chip: NVIDIA's tools of a release know the chips of that release."""

from __future__ import annotations

Version = tuple[int, ...]

_FIRST_VERSION_FOR_SM: tuple[tuple[int, Version], ...] = (
    # Compute capability × 10 → the CUDA release that brought it (CUDA release notes, nvcc's list).
    (50, (6, 5)),
    (60, (8, 0)),
    (70, (9, 0)),
    (75, (10, 0)),
    (80, (11, 0)),
    (86, (11, 1)),
    (87, (11, 4)),
    (88, (13, 0)),
    (89, (11, 8)),
    (90, (11, 8)),
    (100, (12, 8)),
    (103, (12, 9)),
    (110, (13, 0)),
    (120, (12, 8)),
    (121, (12, 9)),
)

_DROPPED_BELOW_SM: tuple[tuple[Version, int], ...] = (((13, 0), 75), ((12, 0), 50))
"""CUDA 13 gave up everything before Turing, CUDA 12 everything before Maxwell."""


def first_version_for(sm: tuple[int, ...]) -> Version | None:
    """The oldest release that knows a chip, ``(9, 0)`` → ``(11, 8)``; None for chips not in the table."""
    number = _number(sm)
    exact = dict(_FIRST_VERSION_FOR_SM).get(number)
    if exact is not None:
        return exact
    older = [version for known, version in _FIRST_VERSION_FOR_SM if known <= number and known // 10 == sm[0]]
    return max(older) if older else None


def has_dropped(version: Version, sm: tuple[int, ...]) -> bool:
    """Whether a release has given up a chip that earlier ones knew."""
    return any(version >= since and _number(sm) < below for since, below in _DROPPED_BELOW_SM)


def _number(sm: tuple[int, ...]) -> int:
    return sm[0] * 10 + (sm[1] if len(sm) > 1 else 0)


def fits(version: Version, sm: tuple[int, ...]) -> bool:
    """Whether a release knows a chip; one that is not in the table is taken to be known by all."""
    first = first_version_for(sm)
    return (first is None or version >= first) and not has_dropped(version, sm)
