"""Send one request and read its stream, with aiohttp. Never raises for what a server does: errors are data."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from crashlab.soak import classes
from crashlab.soak.answer import Answer
from crashlab.soak.ask import PATHS, Ask
from crashlab.soak.board import Board, Flight
from crashlab.soak.record import Record, begin
from crashlab.soak.wirewords import words_of

if TYPE_CHECKING:
    import aiohttp

_GATHER = 0.08
"""After the first bytes of an answer the client looks this often (seconds) for more: one look takes
whatever has come meanwhile. Waking for each token of each stream would cost a core at 256 streams."""
_REJECTING = (429, 503)
_READ_BYTES = 16 << 10
"""asyncio asks the kernel for 256 KiB at each read and gives the memory back, which costs more than all
else when a read brings one token (Lib/asyncio/selector_events.py, max_size)."""


class Server(NamedTuple):
    """``url`` without a path; ``key`` is the API key."""

    url: str
    model: str = ""
    key: str | None = None
    extra: Mapping[str, Any] | None = None

    @property
    def headers(self) -> dict[str, str]:
        """For every request."""
        out = {"Content-Type": "application/json"}
        if self.key:
            out["Authorization"] = f"Bearer {self.key}"
        return out

    @property
    def has_plain_model(self) -> bool:
        """Whether the model's name may stand in a command line. The server says it: ``x,trust_remote_code=True``
        would be two arguments of lm-eval, and a name with blanks or quotes another command in ``sh -c``."""
        return re.fullmatch(r"(?!-)[\w./~+@:-]{0,400}", self.model) is not None


class Reply(NamedTuple):
    """A request's record and the text of its answer, as far as it was kept."""

    record: Record
    text: str


@asynccontextmanager
async def open_session() -> AsyncIterator[aiohttp.ClientSession]:
    """A session without limits of its own: deadlines are ours, and so is the bound on connections."""
    import aiohttp

    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False) as session:
        yield session


class Client:
    """Sends requests to one server and keeps the board."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        server: Server,
        board: Board,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session, self._server, self._board, self._clock = session, server, board, clock
        self._next = 0

    async def ask(self, ask: Ask) -> Reply:
        """Send, read to the end (or to where the client hangs up), and say how it went."""
        self._next += 1
        number = self._next
        flight = Flight(ask, self._clock(), asyncio.current_task())
        record = begin(ask, flight.sent, _utc())
        answer = Answer()
        self._board.flights[number] = flight
        self._board.sent += 1
        status: int | None = None
        error: str | None = None
        detail: str | None = None
        try:
            status, error, detail = await self._exchange(ask, flight, answer)
        except asyncio.CancelledError:
            if flight.doom is None:
                raise
            error = flight.doom
            _uncancel()
        except Exception as problem:  # noqa: BLE001 - whatever the network or the parser throws is data
            error, detail = classify(problem, flight)
        finally:
            del self._board.flights[number]
        now = self._clock()
        return Reply(_finished(record, flight, answer, status, error, detail, now), answer.text)

    async def _exchange(
        self, ask: Ask, flight: Flight, answer: Answer
    ) -> tuple[int | None, str | None, str | None]:
        server = self._server
        async with self._session.post(
            server.url + PATHS[ask.endpoint],
            data=ask.body(server.model, server.extra),
            headers={**server.headers, "X-Request-Id": f"crashlab-{ask.lane}-{ask.number}"},
            allow_redirects=False,
        ) as response:
            flight.connected = True
            status = response.status
            if status != 200:
                body = (await response.content.read(2000)).decode("utf-8", "replace")
                kind = classes.REJECTED if status in _REJECTING else classes.HTTP
                return status, kind, " ".join(body.split())[:300] or None
            hung_up = await self._read(ask, flight, answer, response)
        if hung_up:
            return status, classes.CANCELLED, None
        return status, answer.end(), answer.detail

    async def _read(self, ask: Ask, flight: Flight, answer: Answer, response: aiohttp.ClientResponse) -> bool:
        """Read the stream; True if the client hung up on purpose."""
        if ask.cancel_after == 0:
            response.close()
            return True
        content, board, clock = response.content, self._board, self._clock
        _small_reads(response)
        gather = _GATHER if ask.cancel_after is None else 0.0
        while True:
            data = await content.readany()
            if not data:
                return False
            now = clock()
            flight.heard(now, len(data))
            board.heard(now, len(data))
            answer.feed(data)
            if ask.cancel_after is not None and answer.chunks >= ask.cancel_after and not answer.done:
                response.close()
                return True
            if gather and not content.at_eof():
                await asyncio.sleep(gather)


def classify(problem: Exception, flight: Flight) -> tuple[str, str]:
    """The error class of what a request raised, and the words."""
    import aiohttp

    detail = words_of(problem)
    if isinstance(problem, aiohttp.ClientConnectorError):
        return classes.REFUSED, detail
    if isinstance(problem, (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError)):
        return classes.RESET, detail
    if isinstance(problem, (aiohttp.ClientResponseError, aiohttp.InvalidURL, ValueError)):
        return classes.MALFORMED, detail
    if isinstance(problem, (OSError, aiohttp.ClientError)):
        return classes.RESET if flight.connected or flight.bytes else classes.REFUSED, detail
    return classes.MALFORMED, detail


def _finished(
    record: Record,
    flight: Flight,
    answer: Answer,
    status: int | None,
    error: str | None,
    detail: str | None,
    now: float,
) -> Record:
    return record._replace(
        first=None if flight.first is None else flight.first - flight.sent,
        last=None if flight.last is None else flight.last - flight.sent,
        total=now - flight.sent,
        gap=flight.gap or None,
        tokens=answer.tokens,
        prompt_tokens=answer.prompt_tokens,
        bytes=flight.bytes,
        chunks=answer.chunks,
        status=status if status is not None else (200 if flight.bytes else None),
        finish=answer.finish,
        error=error,
        detail=detail,
    )


def _small_reads(response: aiohttp.ClientResponse) -> None:
    transport = response.connection.transport if response.connection is not None else None
    if transport is not None and hasattr(transport, "max_size"):
        transport.max_size = _READ_BYTES


def _uncancel() -> None:
    """Python 3.11 counts requests to cancel; this one was ours and has been answered."""
    task = asyncio.current_task()
    if task is not None and hasattr(task, "uncancel"):
        task.uncancel()


def _utc() -> str:
    now = time.time()
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(now))}.{int(now * 1000) % 1000:03d}Z"
