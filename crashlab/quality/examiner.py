"""Runs an interview in a thread with an event loop of its own, so that whoever supervises a server may block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from crashlab.errors import CrashlabError
from crashlab.quality import lmeval
from crashlab.quality.answered import Answered
from crashlab.quality.interview import Ways, interview
from crashlab.quality.line import How, Line, Wire, open_wire
from crashlab.quality.logprobs import Likelihoods, likelihoods, texts_of
from crashlab.quality.settings import Arm, Settings
from crashlab.quality.talk import Talk
from crashlab.soak.client import Server
from crashlab.soak.metrics import MAX_BYTES, parse_metrics
from crashlab.soak.ready import NotReady, Ready, ask_ready

WAITING, ASKING, DONE = "waiting", "asking", "done"
_RETRY = 0.5
_TRY = 10.0
Note = Callable[[dict[str, Any]], object]


class Examiner:
    """:meth:`start` it, wait until :attr:`phase` is DONE, read :attr:`talk`.

    ``note`` takes one line for each answer, ``say`` a line for the user; both are called in the
    examiner's thread. ``error`` is one of ours that ended the interview.
    """

    def __init__(
        self,
        arm: Arm,
        settings: Settings,
        note: Note,
        *,
        reference: Talk | None = None,
        say: Callable[[str], None] = lambda _: None,
        folder: str | None = None,
    ) -> None:
        self.arm, self.settings = arm, settings
        self.talk = Talk(arm.name)
        self.phase = WAITING
        self.not_ready = "not asked yet"
        self.final = False
        self.error: CrashlabError | None = None
        self._note, self._say, self._reference, self._folder = note, say, reference, folder
        self._stopping = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._line: Line | None = None
        self._wire: Wire | None = None
        self._thread = threading.Thread(target=self._work, name=f"crashlab-quality-{arm.name}", daemon=True)

    def start(self) -> None:
        """Begin: wait for readiness, then ask."""
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether the thread still runs."""
        return self._thread.is_alive()

    def join(self, seconds: float) -> None:
        """Wait for the end."""
        self._thread.join(seconds)

    def stop(self, seconds: float = 10.0) -> None:
        """Ask nothing more, hang up, and end."""
        self._stopping.set()
        loop = self._loop
        if loop is not None and self.alive:
            with suppress(RuntimeError):  # the loop has just ended by itself
                loop.call_soon_threadsafe(self._hang_up)
        self.join(seconds)

    def _hang_up(self) -> None:
        if self._line is not None:
            self._line.stopping = True
        if self._wire is not None:
            self._wire.hang_up()

    def _work(self) -> None:
        try:
            asyncio.run(self._run())
        except CrashlabError as error:
            self.error = error
            self.talk = self.talk._replace(problem=str(error))
        except Exception as error:  # noqa: BLE001 - told by the talk, not by a dying thread
            self.talk = self.talk._replace(problem=f"{type(error).__name__}: {error}"[:300])
        self.phase = DONE

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        arm, settings = self.arm, self.settings
        server = Server(arm.url, arm.model, arm.key, settings.extra)
        async with open_wire(server, settings.deadlines) as wire:
            self._wire = wire
            ready = await self._wait_ready(wire)
            if ready is None:
                self.talk = self.talk._replace(problem=f"never ready: {self.not_ready}")
                return
            wire.server = server._replace(model=ready.model)
            token0 = await text_of_token0(wire)
            self.talk = self.talk._replace(
                model=ready.model, context=ready.context, tokens_a_word=ready.tokens_a_word, token0=token0
            )
            self._line = Line(wire.ask_one, lambda row: self._note({"arm": arm.name, **row}))
            self._line.stopping = self._stopping.is_set()
            self.phase = ASKING
            await self._ask(wire, self._line, token0)

    async def _ask(self, wire: Wire, line: Line, token0: str | None) -> None:
        settings = self.settings
        how = How(settings.concurrency, settings.endpoint, token0 if token0 is not None else "!")

        async def answers(label: str) -> tuple[Answered, ...]:
            job = lmeval.Job(settings.lm_eval, wire.server, settings.seed, settings.limit)
            stopping = self._stopping.is_set
            return await asyncio.to_thread(lmeval.ask, job, label, self._folder, stopping, self._say)

        async def told() -> Likelihoods | None:
            return await likelihoods(wire, texts_of(settings.suite))

        ways = Ways(line, how, answers if settings.lm_eval else None, told, self._say, self._keep)
        before = await _corrupted(wire)
        talk = await interview(self.talk, settings, ways, self._reference)
        after = await _corrupted(wire)
        grown = None if before is None or after is None else max(0.0, after - before)
        self.talk = talk._replace(corrupted=grown)

    def _keep(self, talk: Talk) -> None:
        """What was answered so far: it counts even if the server dies before the end."""
        self.talk = talk

    async def _wait_ready(self, wire: Wire) -> Ready | None:
        began = asyncio.get_running_loop().time()
        while not self._stopping.is_set():
            found = await ask_ready(wire.session, wire.server)
            if not isinstance(found, NotReady):
                return found
            self.not_ready, self.final = found.why, found.final
            waited = asyncio.get_running_loop().time() - began
            if waited > self.settings.ready_within or (found.final and waited > _TRY):
                return None
            await asyncio.sleep(_RETRY)
        return None


async def text_of_token0(wire: Wire) -> str | None:
    """What token id 0 looks like on this server (vLLM's /detokenize); None where it does not tell."""
    try:
        async with wire.session.post(
            f"{wire.server.url}/detokenize",
            json={"model": wire.server.model, "tokens": [0]},
            headers=wire.server.headers,
            allow_redirects=False,
        ) as response:
            value = await asyncio.wait_for(response.json(), _TRY) if response.status == 200 else None
    except Exception:  # noqa: BLE001 - an extra that not every server has
        return None
    text = value.get("prompt") if isinstance(value, dict) else None
    return text[:40] if isinstance(text, str) and text else None


async def _corrupted(wire: Wire) -> float | None:
    """The server's count of requests with NaN logits; None where it does not count them."""
    try:
        async with wire.session.get(
            f"{wire.server.url}/metrics", headers=wire.server.headers, allow_redirects=False
        ) as response:
            raw = await asyncio.wait_for(response.content.read(MAX_BYTES), _TRY)
            while not response.content.at_eof() and len(raw) < MAX_BYTES:
                raw += await asyncio.wait_for(response.content.read(MAX_BYTES), _TRY)
    except Exception:  # noqa: BLE001 - an extra that not every server has
        return None
    return parse_metrics(raw.decode("utf-8", "replace")).get("corrupted")
