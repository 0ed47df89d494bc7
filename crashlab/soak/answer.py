"""What a streamed answer amounts to so far: text, tokens, how it ended, and what was wrong with it."""

from __future__ import annotations

import json
from typing import Any

from crashlab.soak import classes
from crashlab.soak.sse import EventStream

KEPT_CHARS = 16 << 10
_decode = json.JSONDecoder().decode


class Answer:
    """Feed bytes of a 200 stream. Keeps the first :data:`KEPT_CHARS` characters of text."""

    def __init__(self) -> None:
        self.chunks = 0
        self.finish: str | None = None
        self.done = False
        self.usage: int | None = None
        self.prompt_tokens: int | None = None
        self.error: str | None = None
        self.detail: str | None = None
        self.chars = 0
        self._parts: list[str] = []
        self._stream = EventStream()

    @property
    def tokens(self) -> int:
        """As the server counted, else the number of chunks that carried text (a lower bound)."""
        return self.usage if self.usage is not None else self.chunks

    @property
    def text(self) -> str:
        """The text as far as it is kept."""
        return "".join(self._parts)

    def feed(self, data: bytes) -> int:
        """Take bytes; the number of chunks with text among them."""
        before = self.chunks
        for payload in self._stream.feed(data):
            if payload is None:
                self._wrong(classes.MALFORMED, "the stream holds lines that are no server-sent events")
            elif payload == b"[DONE]":
                self.done = True
            elif payload:
                self._event(payload)
        if self._stream.overlong:
            self._wrong(classes.MALFORMED, "an event is longer than a megabyte")
        return self.chunks - before

    def end(self) -> str | None:
        """The stream has ended: its error class, or None if the answer is proper."""
        if self.error is not None:
            return self.error
        if self.finish is None and (self._stream.pending or not self.done or not self.chunks):
            self._wrong(classes.TRUNCATED, "the stream ended without a finish reason")
        elif self.chunks == 0:
            self._wrong(classes.EMPTY, f"no text; finish reason {self.finish!r}")
        return self.error

    def _event(self, payload: bytes) -> None:
        try:
            event = _decode(payload.decode())  # loads() would first guess the encoding of bytes
        except (ValueError, RecursionError):
            self._wrong(classes.MALFORMED, "an event is no JSON")
            return
        if not isinstance(event, dict):
            self._wrong(classes.MALFORMED, "an event is no JSON object")
            return
        if event.get("error"):
            self._wrong(classes.STREAM_ERROR, _message(event["error"]))
            return
        usage = event.get("usage")
        if isinstance(usage, dict):
            self.usage = _count(usage.get("completion_tokens"), self.usage)
            self.prompt_tokens = _count(usage.get("prompt_tokens"), self.prompt_tokens)
        choices = event.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                self._choice(choice)

    def _choice(self, choice: dict[str, Any]) -> None:
        text = choice.get("text")
        delta = choice.get("delta")
        if isinstance(delta, dict):
            text = delta.get("content") or delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(text, str) and text:
            self.chunks += 1
            if self.chars < KEPT_CHARS:
                self._parts.append(text[: KEPT_CHARS - self.chars])
            self.chars += len(text)
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and finish:
            self.finish = finish[:40]

    def _wrong(self, error: str, detail: str) -> None:
        if self.error is None:
            self.error, self.detail = error, detail


def _message(error: object) -> str:
    if isinstance(error, dict):
        error = error.get("message") or error
    return str(error)[:300]


def _count(value: object, old: int | None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40 else old
