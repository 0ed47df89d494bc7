"""One line of the request log: how a request went, without its text."""

from __future__ import annotations

from typing import Any, NamedTuple

from crashlab.rundir.lines import finite
from crashlab.soak.ask import Ask


class Record(NamedTuple):
    """Times in seconds: ``sent`` on CLOCK_MONOTONIC, the others after it. ``error`` is one of
    :mod:`crashlab.soak.classes`, None for a proper answer. ``garbage`` names detectors that fired."""

    lane: int
    number: int
    shape: str
    sent: float
    time: str
    first: float | None = None
    last: float | None = None
    total: float | None = None
    gap: float | None = None
    tokens: int = 0
    prompt_tokens: int | None = None
    prompt_chars: int = 0
    max_tokens: int = 0
    turn: int = 0
    bytes: int = 0
    chunks: int = 0
    status: int | None = None
    finish: str | None = None
    error: str | None = None
    detail: str | None = None
    garbage: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Without what is absent or has its default."""
        defaults = self._field_defaults
        out: dict[str, Any] = {}
        for name, value in self._asdict().items():
            if name in defaults and value == defaults[name]:
                continue
            if isinstance(value, float):
                value = round(value, 6)
            out[name] = list(value) if isinstance(value, tuple) else value
        return out


class Recorded(NamedTuple):
    """What a request log tells of a request for sending it again."""

    lane: int
    number: int
    shape: str
    sent: float


def begin(ask: Ask, sent: float, time: str) -> Record:
    """The record of a request that is being sent."""
    return Record(
        ask.lane,
        ask.number,
        ask.shape,
        sent,
        time,
        prompt_chars=ask.prompt_chars,
        max_tokens=ask.max_tokens,
        turn=ask.turn,
    )


def from_json(line: dict[str, Any]) -> Recorded | None:
    """What is needed of a line, or None if it is no record of a request."""
    lane, number, shape, sent = (line.get(k) for k in ("lane", "number", "shape", "sent"))
    if not isinstance(lane, int) or not isinstance(number, int) or not isinstance(shape, str):
        return None
    return Recorded(lane, number, shape, finite(sent) or 0.0)
