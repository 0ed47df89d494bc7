"""The distance between two arms in log-probability: each is asked what it thinks of the same fixed texts.

Nothing is generated, so no divergence blurs it: ``echo`` with ``logprobs`` returns how likely each
prompt token is. Servers without that give None. A/A distance is the noise floor here, too. Of a
question with its right answer only the answer's tokens count: a model that was trained on answers
only may find questions the likelier, the more it is damaged.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from crashlab.quality.prose import build_prose
from crashlab.quality.task import EXACT, NUMBER, Suite

if TYPE_CHECKING:
    from crashlab.quality.line import Wire

ANSWERED = 32
"""Questions with right answers among the fixed texts."""
_AT_A_TIME = 4
_SAME = 1e-6
_NOT_FINITE = 100.0
_MAX_BODY = 4 << 20
_SECONDS = 60.0


class Distance(NamedTuple):
    """Over ``tokens`` tokens: mean and largest absolute difference of log-probability (nats) of those that
    are finite in both arms (None: none is). ``not_finite`` of them are NaN or infinite in one."""

    tokens: int
    mean: float | None
    largest: float | None
    not_finite: int = 0


Likelihoods = tuple[tuple[float, ...] | None, ...]
"""For each text the log-probabilities of its tokens; None: not told."""


class Fall(NamedTuple):
    """Over the right answers of ``texts``: by how much the mean log-probability a token of the second
    arm is below that of the first (nats), and in how many texts it is ``lower`` and ``higher``."""

    texts: int
    mean: float
    lower: int
    higher: int


class Text(NamedTuple):
    """A fixed text; its tokens count from character ``since`` on."""

    text: str
    since: int = 0


def texts_of(suite: Suite) -> tuple[Text, ...]:
    """Fixed texts: ordinary ones, then questions with their right answers."""
    scored = [task for task in suite.tasks if task.scoring in (NUMBER, EXACT)][:ANSWERED]
    prose = tuple(Text(task.prompt) for task in build_prose().tasks)
    return (*prose, *(Text(f"{task.prompt} {task.answer}", len(task.prompt)) for task in scored))


async def likelihoods(wire: Wire, texts: Sequence[Text]) -> Likelihoods | None:
    """Ask for all texts, a few at a time; None if the server does not even tell those of the first."""
    if not texts:
        return None
    first = await _ask(wire, texts[0])
    if first is None:
        return None
    gate = asyncio.Semaphore(_AT_A_TIME)

    async def one(text: Text) -> tuple[float, ...] | None:
        async with gate:
            return await _ask(wire, text)

    return (first, *await asyncio.gather(*(one(text) for text in texts[1:])))


async def _ask(wire: Wire, text: Text) -> tuple[float, ...] | None:
    server = wire.server
    body = {
        "model": server.model,
        "prompt": text.text,
        "max_tokens": 1,
        "temperature": 0.0,
        "echo": True,
        "logprobs": 1,
        **(server.extra or {}),
    }
    try:
        return await asyncio.wait_for(_post(wire, f"{server.url}/v1/completions", body, text.since), _SECONDS)
    except (asyncio.TimeoutError, TimeoutError):
        return None
    except Exception:  # noqa: BLE001 - an extra that not every server has
        return None


async def _post(wire: Wire, url: str, body: Mapping[str, Any], since: int) -> tuple[float, ...] | None:
    async with wire.session.post(
        url, json=body, headers=wire.server.headers, allow_redirects=False
    ) as response:
        raw = await response.content.read(_MAX_BODY)
        while not response.content.at_eof() and len(raw) < _MAX_BODY:
            raw += await response.content.read(_MAX_BODY)
        if response.status != 200:
            return None
    return read(raw, since)


def read(raw: bytes, since: int = 0) -> tuple[float, ...] | None:
    """The log-probabilities of a completion's tokens that begin at character ``since`` or later.

    None if it holds none, or does not say where its tokens begin although that matters. The first token
    has none, and the last one is the generated one: another in each arm.
    """
    try:
        told = json.loads(raw)["choices"][0]["logprobs"]
        values, offsets = told["token_logprobs"], told.get("text_offset")
    except (ValueError, RecursionError, KeyError, IndexError, TypeError, AttributeError):
        return None
    if not isinstance(values, list):
        return None
    chosen = range(1, len(values) - 1)
    if since:
        if not isinstance(offsets, list) or len(offsets) != len(values):
            return None
        chosen = range(
            next((i for i in chosen if _at_least(offsets[i], since)), len(values)), len(values) - 1
        )
    numbers = [
        float(one) if isinstance(one, (int, float)) and not isinstance(one, bool) else math.nan
        for one in (values[i] for i in chosen)
    ]
    return tuple(numbers) or None


def _at_least(offset: object, since: int) -> bool:
    return isinstance(offset, int) and offset >= since


def distance(first: Likelihoods | None, second: Likelihoods | None) -> Distance | None:
    """Between two arms; None if either told nothing, or other numbers of tokens."""
    if first is None or second is None:
        return None
    gaps: list[float] = []
    tokens = 0
    for one, other in zip(first, second, strict=False):
        if one is not None and other is not None and len(one) == len(other):
            tokens += len(one)
            both = zip(one, other, strict=True)
            gaps += [abs(a - b) for a, b in both if math.isfinite(a) and math.isfinite(b)]
    if not tokens:
        return None
    mean = sum(gaps) / len(gaps) if gaps else None
    return Distance(tokens, mean, max(gaps, default=None), tokens - len(gaps))


def fall(first: Likelihoods | None, second: Likelihoods | None) -> Fall | None:
    """How much less the second arm thinks of right answers; None where not told.

    The ordinary texts are left out: a small model need not know them. NaN counts as lower.
    """
    if first is None or second is None:
        return None
    skip = len(build_prose().tasks)
    falls: list[float] = []
    for one, other in zip(first[skip:], second[skip:], strict=False):
        if one is not None and other is not None and len(one) == len(other) and all(map(math.isfinite, one)):
            gap = sum(one) / len(one) - sum(other) / len(other)
            falls.append(gap if math.isfinite(gap) else _NOT_FINITE)
    if not falls:
        return None
    lower = sum(gap > _SAME for gap in falls)
    higher = sum(gap < -_SAME for gap in falls)
    return Fall(len(falls), sum(falls) / len(falls), lower, higher)
