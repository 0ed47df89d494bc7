"""The two kinds of server: one that is started and supervised here, and one that runs already."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from crashlab.capture.signals import SignalBox
    from crashlab.capture.supervise import Supervisor

_FAULT_KINDS = ("driver", "cuda-error", "device-assert")
_MARGIN = 10.0


class ServerView(NamedTuple):
    """What is known of the server's processes. ``ended`` says how (None: it runs); ``faults`` are
    lines and dumps that tell of a GPU fault; ``dumping``: a dump is being written."""

    ended: str | None = None
    faults: tuple[str, ...] = ()
    dumping: bool = False
    dump_bytes: int = 0


class ServerHandle(Protocol):
    """A server that can be looked at. A supervised one also takes evidence and can be ended."""

    def step(self, seconds: float) -> ServerView:
        """Wait a moment and look."""

    def interrupted(self) -> bool:
        """Whether the user wants to stop."""

    def take_evidence(self, reason: str) -> None:
        """Host stacks and hang dumps, where that is possible."""

    def stop(self, reason: str) -> None:
        """End the server if it is ours, after any dump; returns when it has ended."""


class Supervised:
    """A server that the capture room started. ``before_stop`` is called once when the user wants to
    stop: it saves the last metrics."""

    def __init__(self, supervisor: Supervisor, before_stop: Callable[[], None]) -> None:
        self._supervisor, self._before_stop = supervisor, before_stop
        self._expected_until: float | None = None
        self._interrupted = False

    def step(self, seconds: float) -> ServerView:
        """Let the supervisor look once."""
        supervisor = self._supervisor
        if not supervisor.over:
            supervisor.step(seconds)
        if not self._interrupted and (supervisor.interrupts or supervisor.terminations):
            self._interrupted = True
            self._before_stop()
        return self.view()

    def view(self) -> ServerView:
        """What is known now."""
        supervisor = self._supervisor
        sight = supervisor.watch.sight()
        findings = supervisor.watch.live.findings
        faults = tuple(f"{f.kind}: {f.text}" for f in findings if f.kind in _FAULT_KINDS)
        dumps = tuple(f"dump: {path}" for path in supervisor.watch.dumps.files)
        code = supervisor.process.poll()
        ended = None
        if (code is not None or supervisor.over) and not sight.alive:
            ended = f"the server {_how(code)}"
        return ServerView(ended, (*faults, *dumps), sight.alive, sight.size)

    def interrupted(self) -> bool:
        """One interrupt is enough."""
        return self._interrupted

    def take_evidence(self, reason: str) -> None:
        """Host stacks, then GPU dumps through the pipes."""
        from crashlab.capture.trigger import pipes

        config = self._supervisor.config
        expected = config.hang_dumps and bool(pipes(config.plan.pipe_pattern, config.cwd))
        self._supervisor.take_evidence(reason)
        if expected:
            # The supervisor ends the server itself once the dumps that it asked for are there.
            self._expected_until = time.monotonic() + config.hang_patience + _MARGIN

    def stop(self, reason: str) -> None:
        """Wait for dumps, then end the whole tree."""
        supervisor = self._supervisor
        while not supervisor.over:
            waiting = self._expected_until is not None and time.monotonic() < self._expected_until
            if supervisor.process.poll() is None and not waiting:
                supervisor.stop(f"soak: {reason}")
            supervisor.step()


class Remote:
    """A server that somebody else runs: it can be loaded and watched, not examined."""

    def __init__(self, box: SignalBox) -> None:
        self._box = box
        self._interrupted = False

    def step(self, seconds: float) -> ServerView:
        """Only wait."""
        self._box.wait(seconds, self._box.wake)
        self._interrupted = bool(self._box.take()) or self._interrupted
        return ServerView()

    def interrupted(self) -> bool:
        """Any signal asks to stop."""
        return self._interrupted

    def take_evidence(self, reason: str) -> None:
        """Nothing can be taken from here."""

    def stop(self, reason: str) -> None:
        """It is not ours to end."""


def _how(code: int | None) -> str:
    if code is None:
        return "was ended"
    return f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
