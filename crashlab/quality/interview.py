"""The interview of one arm: its passes, prose, ladder and searches, over any way to ask.

The second arm is given the first one's talk: the ladder repeats what the first arm answered right.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from crashlab.quality import ladder
from crashlab.quality.answered import Answered
from crashlab.quality.line import How, Line
from crashlab.quality.logprobs import Likelihoods
from crashlab.quality.onset import CONCURRENCY, LENGTH, Onset, Probe, find_onset
from crashlab.quality.prose import build_prose
from crashlab.quality.settings import Settings
from crashlab.quality.talk import Cell, Talk
from crashlab.quality.task import Suite

_FEW = 8
"""With fewer easy questions the ladder says nothing."""
Source = Callable[[str], Awaitable[tuple[Answered, ...]]]


class Ways(NamedTuple):
    """How an arm can be asked. ``answers`` gives a pass of the main suite by its label (None: over
    ``line``); ``likelihoods`` its log-probabilities (None: it tells none). ``note`` gets the
    talk so far after each pass."""

    line: Line
    how: How
    answers: Source | None = None
    likelihoods: Callable[[], Awaitable[Likelihoods | None]] | None = None
    say: Callable[[str], None] = lambda _: None
    note: Callable[[Talk], None] = lambda _: None


async def interview(talk: Talk, settings: Settings, ways: Ways, reference: Talk | None) -> Talk:
    """Fill ``talk``. ``reference`` is the first arm's talk, None for the first arm itself."""
    began = time.monotonic()
    rounds = settings.passes if reference is None else 1
    for number in range(1, rounds + 1):
        label = f"{talk.arm}{number}"
        ways.say(f"arm {talk.arm}, pass {number} of {rounds}: {len(settings.suite.tasks)} questions")
        talk = talk._replace(passes=(*talk.passes, await _answers(settings.suite, ways, label)))
        if settings.prose:
            prose = await ways.line.ask_suite(build_prose(), ways.how, f"{label}-prose")
            talk = talk._replace(prose=(*talk.prose, prose))
        if ways.likelihoods is not None:
            talk = talk._replace(likelihoods=(*talk.likelihoods, await ways.likelihoods()))
        ways.note(talk)
        if ways.line.stopping:
            break
    if settings.ladder and ways.answers is None and not ways.line.stopping:
        talk = await _Ladder(talk, settings, ways, reference).climb()
    return talk._replace(seconds=round(time.monotonic() - began, 3))


async def _answers(suite: Suite, ways: Ways, label: str) -> tuple[Answered, ...]:
    if ways.answers is not None:
        return await ways.answers(label)
    return await ways.line.ask_suite(suite, ways.how, label)


class _Ladder:
    """Other lengths and concurrencies, and the search between a good and a bad one."""

    def __init__(self, talk: Talk, settings: Settings, ways: Ways, reference: Talk | None) -> None:
        self._talk, self._settings, self._ways, self._reference = talk, settings, ways, reference
        guide = talk if reference is None else reference
        self._easy = ladder.easy(settings.suite, guide.passes)

    async def climb(self) -> Talk:
        """All steps, then the searches."""
        talk = self._talk
        if len(self._easy.tasks) < _FEW:
            few = f"Only {len(self._easy.tasks)} questions were right each time: too few for other lengths."
            return talk._replace(notes=(*talk.notes, few))
        self._ways.say(f"arm {talk.arm}: {len(self._easy.tasks)} easy questions at other lengths and loads")
        cells = [await self.cell(LENGTH, at) for at in self._lengths()]
        cells += [await self.cell(CONCURRENCY, at) for at in self._loads()]
        onsets = [found for name in (LENGTH, CONCURRENCY) if (found := await self._search(name, cells))]
        return talk._replace(cells=tuple(cells), onsets=tuple(onsets))

    def _lengths(self) -> tuple[int, ...]:
        if self._reference is not None:
            return tuple(cell.at for cell in self._reference.cells if cell.dimension == LENGTH)
        settings = self._settings
        return ladder.lengths_within(self._talk.context, settings.max_length, settings.suite.max_tokens)

    def _loads(self) -> tuple[int, ...]:
        return tuple(at for at in ladder.CONCURRENCIES if at != self._settings.concurrency)

    async def cell(self, dimension: str, at: int) -> Cell:
        """Ask the easy questions at one step; larger batches repeat them until they are full."""
        how, suite, settings = self._ways.how, self._easy, self._settings
        if dimension == LENGTH:
            suite = ladder.padded(suite, at, settings.seed, self._talk.tokens_a_word)
        else:
            how = how._replace(concurrency=at)
            rounds = max(1, -(-ladder.ROUNDS * at // len(suite.tasks)))
            suite = suite._replace(tasks=suite.tasks * rounds)
        answers = await self._ways.line.ask_suite(suite, how, f"{self._talk.arm}-{dimension}-{at}")
        return Cell(dimension, at, *ladder.came(answers))

    async def _search(self, dimension: str, cells: list[Cell]) -> Onset | None:
        """Between a good and a bad step. What the first arm cannot do itself tells nothing of the second."""
        if self._reference is None and not self._settings.alone:
            return None  # what the control cannot do, it cannot do: the second arm is held against it
        wanted = self._wanted(dimension)
        if not wanted:
            return None
        least = min(wanted.values()) - ladder.FALL

        def probe(cell: Cell) -> Probe:
            base = wanted.get(cell.at, least + ladder.FALL)
            share = cell.share
            return Probe(cell.at, cell.right, cell.of, share is not None and share <= base - ladder.FALL)

        first = probe(self._main(dimension))
        steps = [c for c in cells if c.dimension == dimension]
        known = [first, *(probe(c) for c in steps if self._reference is None or c.at in wanted)]
        if first.bad or not any(one.bad for one in known):
            return None
        self._ways.say(f"arm {self._talk.arm}: looking for where garbage begins ({dimension})")

        async def look(at: int) -> Probe:
            return probe(await self.cell(dimension, at))

        return await find_onset(dimension, known, look)

    def _wanted(self, dimension: str) -> dict[int, float]:
        """The share of right answers at each step by the first arm, or all of them for one arm alone."""
        if self._reference is None:
            return {self._main(dimension).at: 1.0}
        found = {c.at: c.share for c in self._reference.cells if c.dimension == dimension}
        return {at: share for at, share in found.items() if share is not None and share >= ladder.FINE}

    def _main(self, dimension: str) -> Cell:
        """The main pass as a step, over the same questions."""
        ids = {task.id for task in self._easy.tasks}
        rows = [one for one in self._talk.passes[-1] if one.task in ids]
        lengths = [one.prompt_tokens for one in rows if one.prompt_tokens is not None]
        at = self._settings.concurrency
        if dimension == LENGTH:
            at = sum(lengths) // len(lengths) if lengths else 1
        return Cell(dimension, at, *ladder.came(rows))
