"""Where garbage begins: bisection over prompt length or over the number of requests at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

LENGTH, CONCURRENCY = "prompt-tokens", "concurrency"
_RATIO = 1.15
"""The search ends when the last good and the first bad value are this near."""


class Probe(NamedTuple):
    """One look: at ``at`` tokens or requests, ``right`` of ``of`` answers were right; ``bad``: too few."""

    at: int
    right: int
    of: int
    bad: bool


class Onset(NamedTuple):
    """Good up to ``good`` and bad from ``bad`` on, as far as ``probes`` tell. ``good`` None: bad at once."""

    dimension: str
    good: int | None
    bad: int
    probes: tuple[Probe, ...] = ()


Look = Callable[[int], Awaitable[Probe]]


async def find_onset(dimension: str, known: list[Probe], look: Look, tries: int = 8) -> Onset | None:
    """Between the largest good value below the first bad one, and that one; None if nothing is bad.

    ``known`` are looks that were made already. Assumes one border; if a larger value is good again,
    the border nearest to the smallest values is found.
    """
    probes = sorted((probe for probe in known if probe.of), key=lambda probe: probe.at)
    first_bad = next((probe for probe in probes if probe.bad), None)
    if first_bad is None:
        return None
    good = max((probe.at for probe in probes if probe.at < first_bad.at), default=None)
    bad = first_bad.at
    if good is None:
        return Onset(dimension, None, bad, tuple(probes))
    for _ in range(tries):
        middle = (good + bad) // 2
        if middle in (good, bad) or bad <= good * _RATIO:
            break
        probe = await look(middle)
        if not probe.of:
            break
        probes.append(probe)
        if probe.bad:
            bad = probe.at
        else:
            good = probe.at
    return Onset(dimension, good, bad, tuple(sorted(probes, key=lambda probe: probe.at)))
