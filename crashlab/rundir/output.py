"""The recorded output of an attempt: stdout and stderr merged in the order in which they came."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from crashlab.errors import UnreadableInput
from crashlab.inputfile import open_regular
from crashlab.rundir import layout
from crashlab.rundir.lines import finite, json_lines
from crashlab.rundir.reader import RunFolder, Segment

_PIECE = 1 << 20


class Piece(NamedTuple):
    """Bytes as they were read from the program. ``at`` is None where the time index is missing."""

    stream: str
    at: float | None
    data: bytes


class _Stream:
    """Reads a stream by its byte offsets, over all its segments; knows the gaps."""

    def __init__(self, segments: tuple[Segment, ...]) -> None:
        self._segments = segments
        self._first = 0
        self.end = max((s.end for s in segments), default=0)

    def read(self, start: int, count: int) -> Iterator[bytes]:
        """The bytes of a range that were kept. No range begins before the one that was asked for last: what lies
        before it is not looked at again, since both an index and a folder may be long."""
        segments = self._segments
        while self._first < len(segments) and segments[self._first].end <= start:
            self._first += 1
        for at in range(self._first, len(segments)):
            segment = segments[at]
            if segment.start >= start + count:
                break
            low, high = max(start, segment.start), min(start + count, segment.end)
            while low < high:
                try:
                    with open_regular(segment.path, "output", follow=False) as file:
                        file.seek(low - segment.start)
                        data = file.read(min(_PIECE, high - low))
                except (OSError, UnreadableInput):
                    break
                if not data:
                    break
                yield data
                low += len(data)

    def gaps(self) -> Iterator[tuple[int, int]]:
        """(offset, bytes) of what is missing between segments."""
        at = 0
        for segment in self._segments:
            if segment.start > at:
                yield at, segment.start - at
            at = max(at, segment.end)


def pieces(run: RunFolder, attempt: int) -> Iterator[Piece]:
    """Everything that was kept of an attempt, by time; what the index does not cover comes last."""
    streams = {name: _Stream(run.stream(attempt, name)) for name in layout.STREAMS}
    told = dict.fromkeys(layout.STREAMS, 0)
    for record in _index(run, attempt):
        stream, at = record.get("s"), record.get("m")
        start, count = record.get("o"), record.get("n")
        if not isinstance(stream, str) or stream not in streams:
            continue
        if not isinstance(start, int) or not isinstance(count, int):
            continue
        if start < told[stream] or count <= 0:
            continue
        seconds = finite(at)
        for data in streams[stream].read(told[stream], start + count - told[stream]):
            yield Piece(stream, seconds, data)
        told[stream] = start + count
    for name, stream_file in streams.items():
        for data in stream_file.read(told[name], max(0, stream_file.end - told[name])):
            yield Piece(name, None, data)


def merged_blocks(run: RunFolder, attempt: int) -> Iterator[bytes]:
    """Blocks of whole lines, each ended by a line break; a line belongs where its end came."""
    held: dict[str, list[bytes]] = {name: [] for name in layout.STREAMS}
    for piece in pieces(run, attempt):
        head, newline, rest = piece.data.rpartition(b"\n")
        if newline:
            yield b"".join(held[piece.stream]) + head + newline
            held[piece.stream].clear()
        if rest:
            held[piece.stream].append(rest)
            if len(held[piece.stream]) > 64:
                held[piece.stream] = [b"".join(held[piece.stream])[: 64 << 20]]
    for parts in held.values():
        if parts:
            yield b"".join(parts) + b"\n"


def missing(run: RunFolder, attempt: int) -> tuple[str, ...]:
    """Sentences about output that was not kept."""
    out = []
    for name in layout.STREAMS:
        for start, count in _Stream(run.stream(attempt, name)).gaps():
            out.append(f"{count:,} bytes of {name} from byte {start:,} on were not kept.")
    return tuple(out)


def _index(run: RunFolder, attempt: int) -> Iterator[dict[str, object]]:
    path = run.file(layout.OUTPUT, layout.index_name(attempt))
    if os.path.isfile(path):
        yield from json_lines(path)
