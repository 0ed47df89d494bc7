"""A proxy that hangs up on every fifth question and passes the rest on, for any server behind it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

EVERY = 5


class DropProxy:
    """``dropped`` counts the questions that got no answer. Each connection carries one request."""

    def __init__(self, target: int) -> None:
        self.dropped = 0
        self.port = 0
        self._target, self._seen = target, 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.lower().split(b"\r\n")
            length = next(
                (int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length")), 0
            )
            body = await reader.readexactly(length)
            if b'"stream": true' in body:
                self._seen += 1
                if self._seen % EVERY == 0:
                    self.dropped += 1
                    return
            await self._pass_on(head, body, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _pass_on(self, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        first, _, rest = head.partition(b"\r\n")
        back.write(first + b"\r\nConnection: close\r\n" + rest + body)
        while data := await there.read(1 << 16):
            writer.write(data)
            await writer.drain()
        back.close()


@contextmanager
def dropping(target: int) -> Iterator[DropProxy]:
    """A proxy in front of ``target``, in a thread."""
    loop = asyncio.new_event_loop()
    proxy = DropProxy(target)
    server = loop.run_until_complete(asyncio.start_server(proxy.handle, "127.0.0.1", 0))
    proxy.port = server.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)
