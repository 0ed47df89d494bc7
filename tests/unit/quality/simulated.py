"""A server without sockets for the tests of the quality room, and shorthands around it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from crashlab.demo.answers import Answers, Flaws
from crashlab.quality.answered import Answered
from crashlab.quality.build import Heard, build_report
from crashlab.quality.facts import QualityReport
from crashlab.quality.generate import build_suite
from crashlab.quality.interview import Ways, interview
from crashlab.quality.line import How, Line
from crashlab.quality.scoring import CORRECT, WRONG
from crashlab.quality.settings import Arm, Settings
from crashlab.quality.talk import Talk
from crashlab.quality.task import Suite
from crashlab.soak import classes
from crashlab.soak.ask import Ask
from crashlab.soak.client import Reply
from crashlab.soak.record import begin


class Simulated:
    """Answers as the demo server does. ``running`` counts what is under way; ``asked`` keeps every request."""

    def __init__(self, suite: Suite, flaws: Flaws, seed: int = 1) -> None:
        known = {task.question: task.answer for task in suite.tasks}
        self._answers = Answers(known, flaws, seed)
        self.running = 0
        self.most = 0
        self.asked: list[tuple[Ask, Mapping[str, Any]]] = []

    async def ask_one(self, ask: Ask, extra: Mapping[str, Any]) -> Reply:
        self.asked.append((ask, extra))
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        prompt = "\n".join(ask.messages)
        tokens = len(prompt.split())
        pieces = self._answers.plan(prompt, tokens, self.running).pieces
        self.running -= 1
        record = begin(ask, 0.0, "2026-11-30T00:00:00.000Z")
        if pieces is None:
            return Reply(record._replace(error=classes.RESET, detail="server disconnected"), "")
        text = "".join(pieces[: ask.max_tokens])
        error = None if text else classes.EMPTY
        length = len(pieces) > ask.max_tokens or len(pieces) >= 40
        return Reply(
            record._replace(
                tokens=min(len(pieces), ask.max_tokens),
                finish="length" if length else "stop",
                prompt_tokens=tokens,
                error=error,
            ),
            text,
        )


def talk_of(
    name: str, settings: Settings, flaws: Flaws, reference: Talk | None = None, seed: int = 1
) -> Talk:
    """A whole interview with a simulated server."""
    server = Simulated(settings.suite, flaws, seed)
    ways = Ways(Line(server.ask_one, lambda row: None), How(settings.concurrency))
    talk = Talk(name, "simulated", 8192, 1.0, "!")
    return asyncio.run(interview(talk, settings, ways, reference))


def report_of(
    flaws_a: Flaws, flaws_b: Flaws | None, *, questions: int = 200, seed: int = 1, **fields: Any
) -> QualityReport:
    """Two arms (or one), asked and judged."""
    settings = Settings(build_suite(seed, questions), seed, alone=flaws_b is None, **fields)
    a = talk_of("A", settings, flaws_a, seed=seed)
    heard = [Heard(Arm("A", "http://a:8000"), a)]
    if flaws_b is not None:
        b = talk_of("B", settings, flaws_b, a, seed=seed + 1000)
        heard.append(Heard(Arm("B", "http://b:8000"), b))
    return build_report(settings, heard, created="2026-11-30T00:00:00Z")


def answers(right: str, *, start: int = 0) -> tuple[Answered, ...]:
    """``"+-?!"``: correct, wrong, invalid, error."""
    outcomes = {"+": CORRECT, "-": WRONG, "?": "invalid", "!": "error"}
    return tuple(
        Answered(f"t{start + i}", "level", outcomes[mark], f"answer {mark}") for i, mark in enumerate(right)
    )
