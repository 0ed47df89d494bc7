"""How much a server was exposed to: steps, tokens, requests, hours. A clean run means nothing without it."""

from __future__ import annotations

from typing import NamedTuple

from crashlab.postmortem.words import counted
from crashlab.soak.board import Board
from crashlab.soak.metrics import Counters

_ROLES = ("engine_steps", "generation_tokens", "prompt_tokens")


class Exposure(NamedTuple):
    """``seconds`` under load. ``engine_steps`` None: the server does not tell, or was not asked since its
    first answer. ``tokens`` as the client received them, ``prompt_tokens`` as the server counted them,
    where it does."""

    seconds: float = 0.0
    engine_steps: int | None = None
    requests: int = 0
    failed: int = 0
    tokens: int = 0
    prompt_tokens: int | None = None

    @property
    def answered(self) -> int:
        """Requests that did not fail (those that the client itself cancelled included)."""
        return self.requests - self.failed

    def plus(self, other: Exposure) -> Exposure:
        """Both together (several attempts)."""
        return Exposure(
            self.seconds + other.seconds,
            _sum(self.engine_steps, other.engine_steps),
            self.requests + other.requests,
            self.failed + other.failed,
            self.tokens + other.tokens,
            _sum(self.prompt_tokens, other.prompt_tokens),
        )

    def fields(self) -> dict[str, float]:
        """For the report: hours, engine_steps, requests, tokens. What is unknown is left out."""
        out: dict[str, float] = {
            "hours": round(self.seconds / 3600, 6),
            "requests": self.requests,
            "tokens": self.tokens,
        }
        if self.engine_steps is not None:
            out["engine_steps"] = self.engine_steps
        if self.prompt_tokens is not None:
            out["prompt_tokens"] = self.prompt_tokens
        return out

    def words(self) -> str:
        """One line for people."""
        parts = [duration(self.seconds), counted(self.requests, "request"), counted(self.tokens, "token")]
        if self.engine_steps is not None:
            parts.insert(1, counted(self.engine_steps, "engine step"))
        return ", ".join(parts)


class ExposureMeter:
    """Adds up counters that start anew when the server does, or when it is reset."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}
        self._sum: dict[str, float] = {}
        self._began: float | None = None
        self._until: float | None = None
        self._readings = 0
        self._read: float | None = None

    def begin(self, now: float) -> None:
        """The load begins."""
        self._began = self._until = now

    def see(self, now: float, counters: Counters | None, at: float | None = None) -> None:
        """Time passes, with the metrics as they were ``at`` that moment, else now (None: not readable)."""
        if self._began is not None:
            self._until = now
        if counters is None:
            return
        self._readings += 1
        self._read = now if at is None else at
        for role in _ROLES:
            value = counters.get(role)
            if value is None:
                continue
            last = self._last.get(role)
            # The first reading counts from where the load found it; a smaller one is a new server.
            step = 0.0 if last is None else (value - last if value >= last else value)
            self._sum[role] = self._sum.get(role, 0.0) + step
            self._last[role] = value

    def total(self, board: Board) -> Exposure:
        """So far."""
        seconds = 0.0 if self._began is None or self._until is None else self._until - self._began
        sums = self._sum if self._known(board) else {}
        steps, prompt = sums.get("engine_steps"), sums.get("prompt_tokens")
        failed = sum(count for kind, count in board.errors.items() if kind not in ("cancelled", "stopped"))
        tokens = board.tokens or int(sums.get("generation_tokens", 0))
        return Exposure(
            seconds,
            None if steps is None else int(steps),
            board.finished,
            failed,
            tokens,
            int(prompt) if prompt is not None else (board.prompt_tokens or None),
        )

    def _known(self, board: Board) -> bool:
        """One reading alone says where the counters stood, not how far they went; and none that is older
        than the first answer says what that answer took."""
        if self._readings < 2 or self._read is None:
            return False
        return board.first_success is None or self._read >= board.first_success


def duration(seconds: float) -> str:
    """``1h 02m``, ``3m 20s``, ``12 s``."""
    whole = int(seconds)
    if whole >= 3600:
        return f"{whole // 3600}h {whole % 3600 // 60:02d}m"
    if whole >= 60:
        return f"{whole // 60}m {whole % 60:02d}s"
    return f"{whole} s"


def _sum(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return one if other is None else other
    return one + other
