"""Runs the load in a thread with an event loop of its own, so that whoever supervises may block."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from crashlab.soak.board import Board
from crashlab.soak.canary import Canaries
from crashlab.soak.client import Client, Server, open_session
from crashlab.soak.deadlines import sweep
from crashlab.soak.external import ExternalLoad
from crashlab.soak.garbagewatch import GarbageWatch
from crashlab.soak.load import AskSource, Load
from crashlab.soak.probe import Probe
from crashlab.soak.ready import NotReady, Ready, ask_ready
from crashlab.soak.record import Record
from crashlab.soak.replay import header_of, load_replay
from crashlab.soak.settings import SoakSettings
from crashlab.soak.shapes import Lane

WAITING, LOADING, DONE, FAILED = "waiting", "loading", "done", "failed"
_SWEEP = 0.25
_RETRY = 0.5

Note = Callable[[dict[str, Any]], None]


class LoadDriver:
    """Start it, read :attr:`phase`, :attr:`board` and :attr:`probe`, and :meth:`stop` it.

    ``note_request`` and ``note_sample`` take the lines of the request log (first the one that names the
    load, with ``record``) and of the metrics log;
    they are called in the load's thread only.
    """

    def __init__(self, settings: SoakSettings, note_request: Note, note_sample: Note) -> None:
        self.settings = settings
        self.board = Board()
        self.watch = GarbageWatch()
        self.canaries = Canaries()
        self.phase = WAITING
        self.ready: Ready | None = None
        self.not_ready = "not asked yet"
        self.final = False
        self.problem: str | None = None
        self.probe: Probe | None = None
        self.load: Load | None = None
        self.external: ExternalLoad | None = None
        self._note_request, self._note_sample = note_request, note_sample
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main: asyncio.Task[None] | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="crashlab-load", daemon=True)

    def start(self) -> None:
        """Begin: wait for readiness, then load."""
        self._thread.start()

    def stop(self, seconds: float = 5.0) -> None:
        """Hang up and end the thread. What is in flight becomes a record of its own."""
        self._stopping.set()
        loop = self._loop
        if loop is not None and self._thread.is_alive():
            with suppress(RuntimeError):  # the loop has just ended by itself
                loop.call_soon_threadsafe(self._begin_stop)
        self._thread.join(seconds)

    @property
    def alive(self) -> bool:
        """Whether the thread still runs."""
        return self._thread.is_alive()

    def garbage(self) -> str | None:
        """Why the answers count as garbage, or None."""
        for finding in self.watch.findings:
            if finding.certain:
                return finding.what
        return self.load.garbage if self.load is not None else None

    def _work(self) -> None:
        try:
            asyncio.run(self._run())
        except asyncio.CancelledError:
            pass
        except Exception as error:  # noqa: BLE001 - told by the phase, not by a dying thread
            self.problem = f"{type(error).__name__}: {error}"[:300]
        self.phase = FAILED if self.problem is not None else DONE

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._main = asyncio.current_task()
        if self._stopping.is_set():
            return
        settings = self.settings
        server = Server(settings.url, settings.model, settings.key, settings.extra)
        async with open_session() as session:
            ready = await self._wait_ready(session, server)
            if ready is None:
                return
            self.ready = ready
            server = server._replace(model=ready.model)
            self.probe = Probe(session, server, self._note_sample, interval=settings.probe_interval)
            client = Client(session, server, self.board)
            await self.probe.once()  # where the counters stand before the load
            helpers = [asyncio.ensure_future(self.probe.run()), asyncio.ensure_future(self._sweep())]
            self.phase = LOADING
            try:
                await (self._external(server) if settings.load_cmd else self._closed_loop(client, ready))
            finally:
                for helper in helpers:
                    helper.cancel()
                await asyncio.gather(*helpers, return_exceptions=True)

    async def _wait_ready(self, session: Any, server: Server) -> Ready | None:
        while not self._stopping.is_set():
            found = await ask_ready(session, server)
            if not isinstance(found, NotReady):
                return found
            self.not_ready, self.final = found.why, found.final
            await asyncio.sleep(_RETRY)
        return None

    async def _closed_loop(self, client: Client, ready: Ready) -> None:
        settings = self.settings
        self.load = Load(
            client.ask,
            self.board,
            self._keep,
            self.watch,
            self.canaries,
            canary_every=settings.canary_every,
            most=settings.budget.requests,
        )
        await self.load.run(self._lanes(ready))

    def _lanes(self, ready: Ready) -> list[AskSource]:
        settings = self.settings
        source = settings.source
        if ready.tokens_a_word is not None and not source.whole:
            # Measured on our own words; texts in other words have about the same ratio.
            source = source._replace(tokens_a_word=ready.tokens_a_word)
        sizes = settings.sizes
        if sizes.context is None:
            sizes = sizes._replace(context=ready.context)
        if settings.replay is not None:
            header, lanes = load_replay(settings.replay, source)
            self._note_request(header)
            return list(lanes)
        self._note_request(header_of(settings.shape, settings.seed, sizes, source))
        return [Lane(settings.shape, settings.seed, n, sizes, source) for n in range(settings.clients)]

    async def _external(self, server: Server) -> None:
        self.external = ExternalLoad(self.settings.load_cmd, server)
        self.problem = await self.external.run()

    def _keep(self, record: Record) -> None:
        self._note_request(record.to_json())

    async def _sweep(self) -> None:
        """Cut off what is overdue, and look at the server's own count of corrupted requests."""
        while True:
            for flight in sweep(list(self.board.flights.values()), self.settings.deadlines, time.monotonic()):
                if isinstance(flight.task, asyncio.Task):
                    flight.task.cancel()
            reading = self.probe.latest if self.probe is not None else None
            if reading is not None and reading.counters is not None:
                self.watch.metrics(reading.counters.get("corrupted"))
            await asyncio.sleep(_SWEEP)

    def _begin_stop(self) -> None:
        if self.external is not None:
            self.external.stop()
        elif self.load is not None:
            self.load.stop()
        elif self._main is not None:
            self._main.cancel()
