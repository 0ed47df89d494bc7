"""Server-sent events out of arbitrary pieces of bytes: linear, bounded, and honest about what it skips."""

from __future__ import annotations

MAX_EVENT = 1 << 20


class EventStream:
    """Feed bytes, get the ``data`` payloads of complete events.

    ``overlong`` is set when an event exceeds :data:`MAX_EVENT` bytes; the rest is then ignored.
    """

    def __init__(self) -> None:
        self.overlong = False
        self._held: list[bytes] = []
        self._held_bytes = 0

    @property
    def pending(self) -> bool:
        """Whether a line has begun and not ended."""
        return bool(self._held)

    def feed(self, data: bytes) -> list[bytes | None]:
        """Payloads in their order; None stands for a line that is neither a field of an event nor a comment.

        An event of several data lines gives one payload a line: servers of this protocol send one JSON
        object in one line.
        """
        if self.overlong:
            return []
        # Pieces are joined when their line ends: a server may send a megabyte of one line byte by byte.
        head, newline, rest = data.rpartition(b"\n")
        whole = b"".join((*self._held, head)).split(b"\n") if newline else []
        if newline:
            self._held, self._held_bytes = [], 0
        if rest:
            self._held.append(rest)
            self._held_bytes += len(rest)
        if self._held_bytes > MAX_EVENT:
            self.overlong, self._held = True, []
        out: list[bytes | None] = []
        for line in whole:
            if line.startswith(b"data:"):
                out.append(line[5:].strip())
            elif line not in (b"", b"\r") and not line.startswith((b":", b"event:", b"id:", b"retry:")):
                out.append(None)
        return out
