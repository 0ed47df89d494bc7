"""Ask /metrics and /health while the load runs, and remember the last word of each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from crashlab.soak.client import Server
from crashlab.soak.metrics import MAX_BYTES, Counters, parse_metrics
from crashlab.soak.wirewords import words_of

if TYPE_CHECKING:
    import aiohttp

_TIMEOUT = 10.0


class Reading(NamedTuple):
    """One round. ``counters`` None: not readable now. ``health``: HTTP status, None: no answer."""

    at: float
    counters: Counters | None
    health: int | None
    problem: str | None = None


_EARLY_ROUNDS, _EARLY_SECONDS = 50, 0.1
"""A server can die within the first second of its load; how far it got then is still to be known."""


class Probe:
    """``latest`` is replaced whole, so another thread may read it."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        server: Server,
        note: Callable[[dict[str, Any]], None],
        *,
        interval: float = 1.0,
        note_every: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.latest: Reading | None = None
        self.raw = b""
        self._session, self._server, self._note, self._clock = session, server, note, clock
        self._interval, self._note_every = interval, note_every
        self._noted = float("-inf")

    async def run(self) -> None:
        """Until cancelled."""
        rounds = 0
        while True:
            began = self._clock()
            await self.once()
            rounds += 1
            interval = min(self._interval, _EARLY_SECONDS) if rounds < _EARLY_ROUNDS else self._interval
            await asyncio.sleep(max(0.05, interval - (self._clock() - began)))

    async def once(self) -> Reading:
        """One round; noted in the run directory when it is time."""
        metrics, health = await asyncio.gather(self._get("/metrics"), self._get("/health"))
        problem = None
        counters: Counters | None = None
        status, body = metrics
        if status == 200:
            self.raw = body
            counters = parse_metrics(body.decode("utf-8", "replace"))
            if not counters.values:
                counters, problem = None, "no known name in /metrics"
        else:
            problem = f"/metrics: {status if status is not None else body.decode('utf-8', 'replace')}"
        reading = Reading(self._clock(), counters, health[0], problem)
        self.latest = reading
        if reading.at - self._noted >= self._note_every:
            self._noted = reading.at
            self._note(
                {
                    "health": reading.health,
                    "problem": problem,
                    **(dict(counters.values) if counters is not None else {}),
                }
            )
        return reading

    async def _get(self, path: str) -> tuple[int | None, bytes]:
        try:
            return await asyncio.wait_for(self._fetch(path), _TIMEOUT)
        except (asyncio.TimeoutError, TimeoutError):
            return None, b"no answer in time"
        except Exception as error:  # noqa: BLE001 - whatever the network does is an observation
            return None, words_of(error).encode()

    async def _fetch(self, path: str) -> tuple[int, bytes]:
        async with self._session.get(
            self._server.url + path, headers=self._server.headers, allow_redirects=False
        ) as response:
            body = bytearray()
            async for piece in response.content.iter_any():
                body += piece
                if len(body) > MAX_BYTES:
                    break
            return response.status, bytes(body)
