"""The closed loop: each lane sends its next request when its last one has ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from crashlab.soak import classes
from crashlab.soak.ask import Ask
from crashlab.soak.board import Board
from crashlab.soak.canary import Canaries, canary_asks
from crashlab.soak.client import Reply
from crashlab.soak.garbagewatch import GarbageWatch
from crashlab.soak.record import Record

Asker = Callable[[Ask], Awaitable[Reply]]
Keep = Callable[[Record], None]

_PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Seconds after the first, second, … failure in a row of a lane: a dead server must not be hammered."""
_RAMP = 0.005
"""Seconds between the first requests of two lanes: hundreds of connections at once would make the
client late in noticing the first answers."""


class AskSource(Protocol):
    """Where a lane's requests come from: a shape, or a log that is replayed."""

    def next(self) -> Ask | None:
        """The next request; None when there are no more."""

    def answered(self, text: str | None, tokens: int) -> None:
        """The answer to the last one."""


class Load:
    """Runs lanes over one asker; every record goes to ``keep`` and the board before anything else."""

    def __init__(
        self,
        asker: Asker,
        board: Board,
        keep: Keep,
        watch: GarbageWatch,
        canaries: Canaries,
        *,
        canary_every: int | None = 200,
        most: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.garbage: str | None = None
        self._asker, self._board, self._keep, self._clock = asker, board, keep, clock
        self._watch, self._canaries = watch, canaries
        self._every, self._most = canary_every, most
        self._issued = 0
        self._next_canary = canary_every or 0
        self._round = 0
        self._stopping = False
        self._waiting = 0
        self._lanes = 0
        self._gate = asyncio.Event()

    async def run(self, lanes: Iterable[AskSource]) -> None:
        """Load until every lane has no more requests, or :meth:`stop`."""
        if self._every:
            for _ in range(2):  # the second round measures how far equal questions differ at rest
                await self._canary_round()
        queue = list(lanes)
        self._lanes = len(queue)
        await asyncio.gather(*(self._lane(lane, at * _RAMP) for at, lane in enumerate(queue)))
        if self._every and not self._stopping:
            await self._canary_round()

    def stop(self) -> None:
        """Send no more, and hang up on what is under way."""
        self._stopping = True
        self._gate.set()
        for flight in list(self._board.flights.values()):
            if flight.doom is None and isinstance(flight.task, asyncio.Task):
                flight.doom = classes.STOPPED
                flight.task.cancel()

    async def _lane(self, lane: AskSource, delay: float) -> None:
        failures = 0
        try:
            await asyncio.sleep(delay)
            while not self._stopping:
                if self._most is not None and self._issued >= self._most:
                    return
                ask = lane.next()
                if ask is None:
                    return
                self._issued += 1
                if ask.together:
                    await self._together()
                    if self._stopping:
                        return
                record, text = await self.one(ask)
                lane.answered(text if record.error is None else None, record.tokens)
                if record.error is None or record.error in classes.INNOCENT or record.error == classes.EMPTY:
                    failures = 0
                else:
                    self._issued -= 1  # only answers count; a server that gives none is the judge's matter
                    await self._pause(_PAUSES[min(failures, len(_PAUSES) - 1)])
                    failures += 1
                await self._maybe_canary()
        finally:
            self._lanes -= 1
            self._open_gate()

    async def one(self, ask: Ask) -> Reply:
        """Send one request, judge its answer, and keep the record."""
        record, text = await self._asker(ask)
        if record.error in (None, classes.EMPTY):
            kinds = self._watch.see(
                f"{record.lane}/{record.number}",
                record.time,
                text,
                record.tokens,
                ask.temperature,
                record.finish,
            )
            record = record._replace(garbage=kinds)
        self._keep(record)
        self._board.note(record, self._clock())
        self._board.flagged += bool(record.garbage)
        return Reply(record, text)

    async def _together(self) -> None:
        """Wait until every lane has come here: then all send at the same moment."""
        gate = self._gate
        self._waiting += 1
        self._open_gate()
        await gate.wait()

    def _open_gate(self) -> None:
        if self._waiting >= self._lanes and self._waiting:
            self._gate.set()
            self._gate, self._waiting = asyncio.Event(), 0
            if self._stopping:
                self._gate.set()

    async def _maybe_canary(self) -> None:
        if not self._every or self._board.finished < self._next_canary or self._stopping:
            return
        self._next_canary = self._board.finished + self._every
        await self._canary_round()

    async def _canary_round(self) -> None:
        asks = canary_asks(self._round)
        self._round += 1
        replies = await asyncio.gather(*(self._asker(ask) for ask in asks))
        answers: list[str | None] = []
        for record, text in replies:
            self._keep(record)
            answers.append(text if record.error in (None, classes.EMPTY) else None)
        bad = self._canaries.see(self._round, answers)
        if bad is not None and self.garbage is None:
            self.garbage = bad

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
