"""The target that talks: a server whose every byte is hostile, read by the soak's client."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.support.fuzz import blindly, shapes
from tests.support.fuzz.target import Target, fixtures

_WAIT = 1.5
_PAUSE = b"\x00pause\x00"
"""Where it stands in a case, the server waits a moment: the client then sees two pieces."""
_HEADS = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
    b"HTTP/1.0 200 OK\r\n\r\n", b"HTTP/1.1 503 busy\r\nRetry-After: 1\r\nContent-Length: %d\r\n\r\n",
    b"HTTP/1.1 301 away\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b; Max-Age=9999999999999999999\r\nContent-Length: %d\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\n",
)  # fmt: skip
_BODIES = (
    b'{"object":"list","data":[{"id":"m","max_model_len":4096}],"choices":[{"text":"x","index":0}],"usage":{"prompt_tokens":300},"count":9}',
    b'data: {"choices":[{"index":0,"text":" one","finish_reason":null}]}\n\ndata: [DONE]\n\n',
    b'data: {"choices":[{"delta":{"content":"two"},"finish_reason":"stop"}],"usage":{"completion_tokens":3}}\n\n',
    b"<html><body>nginx</body></html>", b"", b"null", b"[[[[[[", b"\x1f\x8b\x08\x00",
)  # fmt: skip


def _bodies() -> tuple[bytes, ...]:
    return (*_BODIES, *fixtures("soak/*metrics.txt"))


def _chunked(data: bytes, rng: random.Random) -> bytes:
    out, at = b"", 0
    while at < len(data):
        size = rng.choice((1, 7, 100, 5000))
        piece = data[at : at + size]
        out += b"%x\r\n%b\r\n" % (len(piece), piece) + (_PAUSE if rng.random() < 0.1 else b"")
        at += size
    return out + (b"0\r\n\r\n" if rng.random() < 0.8 else b"")


def _reply(rng: random.Random) -> bytes:
    head, body = rng.choice(_HEADS), rng.choice(_bodies())
    if rng.random() < 0.5:
        body = shapes.change_json(body, rng)
    if rng.random() < 0.4:
        body = blindly.damage_text(body, rng, _BODIES, 64 << 10)
    body = _chunked(body, rng) if b"chunked" in head else body
    reply = (head % len(body) if b"%d" in head else head) + body
    return blindly.damage_text(reply, rng, _HEADS, 64 << 10) if rng.random() < 0.5 else reply


async def _ask(case: bytes) -> None:
    from crashlab.soak.ask import CHAT, COMPLETIONS, Ask
    from crashlab.soak.board import Board
    from crashlab.soak.client import Client, Server, open_session
    from crashlab.soak.probe import Probe
    from crashlab.soak.ready import ask_ready

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            await reader.readuntil(b"\r\n\r\n")
            for piece in case.split(_PAUSE):
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.002)
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        async with open_session() as session:
            target = Server(url, "m", "key")
            notes: list[dict[str, Any]] = []
            client = Client(session, target, Board())
            for number, endpoint in enumerate((COMPLETIONS, CHAT)):
                ask = Ask(0, number, "fresh", endpoint, ("hello",), 16)
                with suppress(asyncio.TimeoutError):
                    reply = await asyncio.wait_for(client.ask(ask), _WAIT)
                    reply.record.to_json()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(Probe(session, target, notes.append).once(), _WAIT)
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(ask_ready(session, target, _WAIT), _WAIT)
    finally:
        server.close()


async def _quietly(case: bytes) -> None:
    """Connections that the client drops are no news here."""
    asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
    await _ask(case)


def _talk(case: bytes, _place: Path) -> None:
    asyncio.run(_quietly(case))


TARGETS = (Target("http", "answers of a hostile server", _reply, _talk),)
