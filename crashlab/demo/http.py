"""As much HTTP/1.1 as the simulated server needs: requests with a body, keep-alive, chunked answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import NamedTuple

_MAX_HEAD = 64 << 10
_MAX_BODY = 64 << 20
_REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    413: "Too Large",
    500: "Internal Server Error",
    503: "Busy",
}


class Request(NamedTuple):
    """``received``: CLOCK_MONOTONIC seconds when the last byte of the body had come."""

    method: str
    path: str
    headers: dict[bytes, bytes]
    body: bytes
    received: float


class Connection(asyncio.Protocol):
    """One connection: a request at a time. ``on_close`` is called when the client hangs up."""

    def __init__(self, handle: Callable[[Connection, Request], None]) -> None:
        self.on_close: Callable[[], None] | None = None
        self._handle = handle
        self._buffer = b""
        self._transport: asyncio.Transport | None = None
        self._busy = False
        self.peer = "?"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self.peer = f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else "?"

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self.on_close is not None:
            self.on_close()

    def answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
        """A whole answer."""
        self._write(_head(status, kind, f"Content-Length: {len(body)}") + body)
        self._done()

    def begin_stream(self) -> None:
        """The head of a stream of server-sent events."""
        self._write(_head(200, "text/event-stream; charset=utf-8", "Transfer-Encoding: chunked"))

    def chunk(self, data: bytes) -> None:
        """A piece of the stream."""
        self._write(b"%x\r\n%b\r\n" % (len(data), data))

    def end_stream(self) -> None:
        """The proper end of the stream."""
        self._write(b"0\r\n\r\n")
        self._done()

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.close()

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def _done(self) -> None:
        self._busy = False
        self.on_close = None
        self._next()

    def _next(self) -> None:
        """Handle the next complete request, if there is one."""
        if self._busy or self._transport is None:
            return
        head, end, rest = self._buffer.partition(b"\r\n\r\n")
        if not end:
            if len(head) > _MAX_HEAD:
                self.close()
            return
        lines = head.split(b"\r\n")
        words = lines[0].decode("latin-1").split(" ")
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(b":")
            headers[name.strip().lower()] = value.strip()
        length = headers.get(b"content-length", b"0")
        size = int(length) if length.isdigit() else -1
        if len(words) != 3 or not 0 <= size <= _MAX_BODY:
            self.close()
            return
        if len(rest) < size:
            return
        self._buffer = rest[size:]
        self._busy = True
        path = words[1].partition("?")[0]
        self._handle(self, Request(words[0], path, headers, rest[:size], time.monotonic()))


def _head(status: int, kind: str, extra: str) -> bytes:
    return (
        f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}\r\nServer: crashlab-demo\r\n"
        f"Content-Type: {kind}\r\n{extra}\r\n\r\n"
    ).encode("latin-1")
