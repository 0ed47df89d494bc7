"""One answer on the wire: a token an event, as servers of this protocol stream by default."""

from __future__ import annotations

import json
import time
from typing import Any

from crashlab.demo.http import Connection, Request


class Stream:
    """Writes the events of one request. Without ``stream`` in the request the text is sent at its end."""

    def __init__(
        self,
        number: int,
        connection: Connection,
        request: Request,
        *,
        chat: bool,
        prompt_tokens: int,
        model: str,
        fields: dict[str, Any],
    ) -> None:
        self.path = request.path
        self.peer = connection.peer
        self.tokens = 0
        self.first: float | None = None
        self._received = request.received
        self._id = request.headers.get(b"x-request-id", b"").decode("latin-1")
        self._connection, self._chat, self._prompt_tokens = connection, chat, prompt_tokens
        self._streaming = bool(fields.get("stream"))
        options = fields.get("stream_options")
        self._usage = isinstance(options, dict) and bool(options.get("include_usage"))
        self._parts: list[str] = []
        kind = "chat.completion" if chat else "text_completion"
        self._base: dict[str, Any] = {"id": f"cmpl-{number}", "object": kind, "model": model}
        self._before, self._after = self._frame()

    def begin(self) -> None:
        """The head goes out at once, before any token."""
        if self._streaming:
            self._connection.begin_stream()

    def token(self, text: str) -> None:
        """One token."""
        self.tokens += 1
        if self.first is None:
            self.first = time.monotonic()
        if self._streaming:
            self._connection.chunk(self._before + text.encode() + self._after)
        else:
            self._parts.append(text)

    def end(self, reason: str) -> None:
        """The last event, the usage where it was asked for, and the end."""
        usage = {
            "prompt_tokens": self._prompt_tokens,
            "completion_tokens": self.tokens,
            "total_tokens": self._prompt_tokens + self.tokens,
        }
        if not self._streaming:
            choice = self._choice("".join(self._parts), reason, whole=True)
            body = json.dumps({**self._base, "choices": [choice], "usage": usage})
            self._connection.answer(200, body.encode())
            return
        events = [{**self._base, "choices": [self._choice("", reason)]}]
        if self._usage:
            events.append({**self._base, "choices": [], "usage": usage})
        text = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
        self._connection.chunk(text.encode())
        self._connection.end_stream()

    def fail(self, message: str) -> None:
        """The engine has gone: an error object in the stream, as vLLM sends it."""
        error = {"error": {"message": message, "type": "InternalServerError", "code": 500}}
        if self._streaming:
            self._connection.chunk(f"data: {json.dumps(error)}\n\ndata: [DONE]\n\n".encode())
            self._connection.end_stream()
        else:
            self._connection.answer(500, json.dumps(error).encode())

    def log_line(self) -> bytes:
        """For the request log: seconds on CLOCK_MONOTONIC."""
        row = {"id": self._id, "received": self._received, "first": self.first, "tokens": self.tokens}
        return json.dumps(row).encode() + b"\n"

    def _choice(self, text: str, reason: str | None, *, whole: bool = False) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": 0, "finish_reason": reason}
        if self._chat:
            choice["message" if whole else "delta"] = {"content": text}
        else:
            choice["text"] = text
        return choice

    def _frame(self) -> tuple[bytes, bytes]:
        """The constant bytes around a token's text, so that a token costs no JSON."""
        mark = "\x1amark"
        event = json.dumps({**self._base, "choices": [self._choice(mark, None)]})
        before, after = event.split(json.dumps(mark)[1:-1])
        return f"data: {before}".encode(), f"{after}\n\n".encode()
