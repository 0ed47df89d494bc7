"""Kinds of verdicts in words: one name each, wherever people read it."""

from __future__ import annotations

_SPOKEN = {
    "gpu-fault": "GPU fault",
    "device-assert": "device assert",
    "trap": "trap",
    "hang": "hang",
    "stall": "stall",
    "garbage": "garbage output",
    "host-death": "host-side death",
    "never-ready": "never ready",
    "no-fault": "no fault",
    "inconclusive": "inconclusive",
    "unreadable": "unreadable",
}


def spoken(kind: str) -> str:
    """``host-side death`` for ``host-death``, within a sentence; a kind that is not known here as it is."""
    return _SPOKEN.get(kind, kind)


def title(kind: str) -> str:
    """The same as a heading: ``Host-side death``."""
    words = spoken(kind)
    return words[:1].upper() + words[1:]
