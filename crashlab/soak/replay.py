"""Send a recorded load again: the same requests, in the order each client sent them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from crashlab.errors import UnreadableInput
from crashlab.rundir import layout
from crashlab.rundir.lines import finite, json_lines
from crashlab.rundir.parts import part_lines
from crashlab.soak.ask import COMPLETIONS, PATHS, Ask
from crashlab.soak.prompts import Source
from crashlab.soak.record import Recorded, from_json
from crashlab.soak.shapes import SHAPES, Lane, Sizes

HEADER = "load"
_PIECE = 200_000


class ReplayLane:
    """One client of the recorded run. ``rows`` are its requests in order."""

    def __init__(self, lane: Lane, numbers: Iterable[int]) -> None:
        self._lane = lane
        self._numbers = list(numbers)
        self._at = 0

    def next(self) -> Ask | None:
        """The next recorded request; None when all were sent."""
        if self._at >= len(self._numbers):
            return None
        self._lane.number = self._numbers[self._at]
        self._at += 1
        return self._lane.next()

    def answered(self, text: str | None, tokens: int) -> None:
        """The answer of the server of today: conversations go on with what it says."""
        self._lane.answered(text, tokens)


def load_replay(path: str, source: Source) -> tuple[dict[str, Any], list[ReplayLane]]:
    """(settings of the recorded load, its lanes) from a request log or the run directory that holds one.

    Of the last attempt, at most the last 200,000 requests: those before a crash matter. Raises
    UnreadableInput if it is no request log, or its shape is unknown here.
    """
    problems: list[str] = []
    header: dict[str, Any] = {}
    rows: list[Recorded] = []
    lines = part_lines(path, layout.REQUESTS, problems) if os.path.isdir(path) else _lines(path, problems)
    for line in lines:
        if line.get("record") == HEADER:
            if not line.get("continued"):
                rows = []  # of several attempts the last counts
            header = line
        elif (row := from_json(line)) is not None and row.lane >= 0:
            rows.append(row)
            if len(rows) > 2 * _PIECE:
                del rows[:_PIECE]
    rows = rows[-_PIECE:]
    shape = header.get("shape")
    if not rows or not isinstance(shape, str) or shape not in SHAPES:
        reason = problems[0] if problems else "it has no requests, or no line that names shape and seed"
        raise UnreadableInput(
            f"{path} cannot be replayed: {reason}",
            hint="Give the requests.jsonl of a soak, or its run directory.",
        )
    return header, lanes_of(rows, header, shape, source)


def _lines(path: str, problems: list[str]) -> Iterator[dict[str, Any]]:
    """The records of a log that the user named: a link may stand for it, other than inside a run directory."""
    try:
        path = os.path.realpath(path)
    except ValueError as error:
        raise UnreadableInput(f"{path!r} is no path: {error}.") from error
    return json_lines(path, problems)


def lanes_of(
    rows: Iterable[Recorded], header: Mapping[str, Any], shape: str, source: Source
) -> list[ReplayLane]:
    """Group by client, in the order of sending."""
    by_lane: dict[int, list[Recorded]] = {}
    for row in rows:
        by_lane.setdefault(row.lane, []).append(row)
    sizes, seed = sizes_of(header), header.get("seed")
    ratio = finite(header.get("tokens_a_word"))
    if ratio is not None and ratio > 0:
        source = source._replace(tokens_a_word=ratio)
    return [
        ReplayLane(
            Lane(shape, seed if isinstance(seed, int) else 0, number, sizes, source),
            [row.number for row in sorted(found, key=lambda row: row.number)],
        )
        for number, found in sorted(by_lane.items())
    ]


def header_of(shape: str, seed: int, sizes: Sizes, source: Source) -> dict[str, Any]:
    """The first line of a request log: all that is needed to make its requests again."""
    return {
        "record": HEADER,
        "shape": shape,
        "seed": seed,
        "prompts": source.name,
        "tokens_a_word": source.tokens_a_word,
        **sizes._asdict(),
    }


def sizes_of(header: Mapping[str, Any]) -> Sizes:
    """Sizes out of such a line; what is missing or odd keeps its default."""
    out: dict[str, Any] = Sizes()._asdict()
    for name in ("input", "output"):
        pair = header.get(name)
        if isinstance(pair, list) and len(pair) == 2 and all(isinstance(v, int) and v > 0 for v in pair):
            out[name] = (pair[0], max(pair))
    for name, kind in (("context", int), ("ignore_eos", bool), ("endpoint", str)):
        if isinstance(header.get(name), kind):
            out[name] = header[name]
    temperature = finite(header.get("temperature"))
    if temperature is not None:
        out["temperature"] = temperature
    if out["endpoint"] not in PATHS:
        out["endpoint"] = COMPLETIONS
    return Sizes(**out)
