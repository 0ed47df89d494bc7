"""Asking one server: the soak's client with its deadlines, a suite at a time, a bounded number at once."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from crashlab.quality.answered import Answered
from crashlab.quality.degenerate import kinds_of
from crashlab.quality.scoring import ERROR, cut, score
from crashlab.quality.task import Suite, Task
from crashlab.soak import classes
from crashlab.soak.ask import COMPLETIONS, Ask
from crashlab.soak.board import Board, Flight
from crashlab.soak.client import Client, Reply, Server, open_session
from crashlab.soak.deadlines import Deadlines, sweep

if TYPE_CHECKING:
    import aiohttp

_SWEEP = 0.25
_GONE = 30
"""So many refused connections in a row, and the rest is not asked any more."""
Keep = Callable[[dict[str, Any]], object]
AskOne = Callable[[Ask, Mapping[str, Any]], Awaitable[Reply]]


class How(NamedTuple):
    """How questions are asked. ``token0`` is the text of token id 0 of this server, as far as known."""

    concurrency: int = 16
    endpoint: str = COMPLETIONS
    token0: str = "!"


class Line:
    """``ask_one`` sends one request (with extra fields); ``keep`` takes a log line for each answer."""

    def __init__(self, ask_one: AskOne, keep: Keep) -> None:
        self.stopping = False
        self._ask_one, self._keep = ask_one, keep
        self._refused = 0

    async def ask_suite(self, suite: Suite, how: How, label: str) -> tuple[Answered, ...]:
        """Ask everything, at most ``how.concurrency`` at a time; answers in the order of the tasks."""
        answers: list[Answered | None] = [None] * len(suite.tasks)
        queue = iter(enumerate(suite.tasks))
        lanes = min(how.concurrency, max(1, len(suite.tasks)))

        async def work(lane: int) -> None:
            for number, task in queue:
                answers[number] = await self._one(suite, task, how, label, lane, number)

        await asyncio.gather(*(work(lane) for lane in range(lanes)))
        return tuple(one for one in answers if one is not None)

    async def _one(self, suite: Suite, task: Task, how: How, label: str, lane: int, number: int) -> Answered:
        if self.stopping or self._refused >= _GONE:
            why = "interrupted" if self.stopping else "the server refuses connections"
            return Answered(task.id, task.level, ERROR, error=classes.STOPPED, detail=f"not asked: {why}")
        ask = Ask(lane, number, "quality", how.endpoint, (task.prompt,), suite.max_tokens, 0.0)
        extra = {"stop": list(suite.stop)} if suite.stop else {}
        began = time.monotonic()
        reply = await self._ask_one(ask, extra)
        answered = judge(suite, task, reply, how.token0)._replace(seconds=round(time.monotonic() - began, 4))
        self._refused = self._refused + 1 if answered.error == classes.REFUSED else 0
        row = {key: value for key, value in answered._asdict().items() if value not in (None, ())}
        self._keep({"pass": label, "time": reply.record.time, "concurrency": how.concurrency, **row})
        return answered


def judge(suite: Suite, task: Task, reply: Reply, token0: str = "!") -> Answered:
    """Score a reply. An answer without text that ended properly is an answer, an invalid one."""
    record = reply.record
    if record.error not in (None, classes.EMPTY):
        return Answered(
            task.id,
            task.level,
            ERROR,
            error=record.error,
            detail=record.detail or (f"HTTP {record.status}" if record.status else None),
            finish=record.finish,
        )
    found = score(task, reply.text, strict=suite.strict, stop=suite.stop)
    return Answered(
        task.id,
        task.level,
        found.outcome,
        cut(reply.text, suite.stop),
        found.strict,
        kinds_of(
            reply.text,
            record.tokens,
            question=task.question or task.prompt,
            finish=record.finish,
            token0=token0,
        ),
        finish=record.finish,
        tokens=record.tokens,
        prompt_tokens=record.prompt_tokens,
    )


class Wire:
    """HTTP to one server. A client a kind of request, as extra fields belong to a client."""

    def __init__(self, session: aiohttp.ClientSession, server: Server) -> None:
        self.session, self.server = session, server
        self._clients: dict[str, Client] = {}
        self._boards: list[Board] = []

    async def ask_one(self, ask: Ask, extra: Mapping[str, Any]) -> Reply:
        """Send one request."""
        key = json.dumps(extra, sort_keys=True)
        if key not in self._clients:
            board = Board()
            merged = {**(self.server.extra or {}), **extra}
            self._clients[key] = Client(self.session, self.server._replace(extra=merged), board)
            self._boards.append(board)
        return await self._clients[key].ask(ask)

    def flights(self) -> list[Flight]:
        """What is under way."""
        return [flight for board in self._boards for flight in board.flights.values()]

    def hang_up(self) -> None:
        """End what is under way: each becomes an error, not a wrong answer."""
        for flight in self.flights():
            if flight.doom is None and isinstance(flight.task, asyncio.Task):
                flight.doom = classes.STOPPED
                flight.task.cancel()


@asynccontextmanager
async def open_wire(server: Server, deadlines: Deadlines) -> AsyncIterator[Wire]:
    """A wire with a sweep that cuts off what is overdue."""
    async with open_session() as session:
        wire = Wire(session, server)
        sweeper = asyncio.ensure_future(_sweep(wire, deadlines))
        try:
            yield wire
        finally:
            sweeper.cancel()
            await asyncio.gather(sweeper, return_exceptions=True)


async def _sweep(wire: Wire, deadlines: Deadlines) -> None:
    while True:
        for flight in sweep(wire.flights(), deadlines, time.monotonic()):
            if isinstance(flight.task, asyncio.Task):
                flight.task.cancel()
        await asyncio.sleep(_SWEEP)
