"""How a soak ended: the kinds, and the event that keeps an outcome in the run directory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from crashlab.rundir.lines import finite

CLEAN = "clean"
FAULT = "fault"
DIED = "died"
STALL = "stall"
GARBAGE = "garbage"
NEVER_READY = "never-ready"
REFUSES = "refuses"
FAILING = "failing"
"""When the load ended, the server took connections and answered errors only, or most requests had failed."""
INTERRUPTED = "interrupted"
LOAD_FAILED = "load-failed"

EVENT = "soak-outcome"
"""The event of a run directory that holds an outcome, so that ``analyze`` can tell it again."""


class Outcome(NamedTuple):
    """``kind`` is one of this module's; ``why`` a clause in words. ``load`` is the state of the load at
    that moment: requests in flight, recent shapes, the server's own counts. ``notes`` are sentences.
    ``ours``: the server still ran and was ended by the soak."""

    kind: str
    why: str
    exposure: Mapping[str, float] = {}
    exposure_words: str = ""
    load: Mapping[str, Any] = {}
    notes: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    ours: bool = False

    def to_fields(self) -> dict[str, Any]:
        """Fields of the event."""
        return {
            "outcome": self.kind,
            "why": self.why,
            "exposure": dict(self.exposure),
            "exposure_words": self.exposure_words,
            "load": dict(self.load),
            "notes": list(self.notes),
            "examples": list(self.examples),
            "ours": self.ours,
        }


def from_fields(fields: Mapping[str, Any]) -> Outcome | None:
    """The outcome of an event's fields, None if they hold none."""
    kind, why = fields.get("outcome"), fields.get("why")
    if not isinstance(kind, str) or not isinstance(why, str):
        return None
    exposure, load = fields.get("exposure"), fields.get("load")
    words = fields.get("exposure_words")
    numbers = exposure.items() if isinstance(exposure, dict) else ()
    return Outcome(
        kind,
        why,
        {k: v for k, v in numbers if finite(v) is not None},
        words if isinstance(words, str) else "",
        load if isinstance(load, dict) else {},
        _texts(fields.get("notes")),
        _texts(fields.get("examples")),
        fields.get("ours") is True,
    )


def _texts(value: object) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()
