"""Is the server ready? Only a real one-token answer counts: /health says 200 before and after its life."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from crashlab.soak.client import Server
from crashlab.soak.wirewords import body_words, is_unknown_host, words_of
from crashlab.soak.words import VOCABULARY

if TYPE_CHECKING:
    import aiohttp

_MODELS = "/v1/models"
_TRY = 30.0
_MAX_BODY = 1 << 20
_SAMPLE = VOCABULARY[::3]
_TOKENS_A_WORD = 10
"""A tokenizer of single characters needs about so many: the sample must fit the smallest context."""


class Ready(NamedTuple):
    """What a ready server tells: ``model`` as it names it, ``context`` tokens (None: it does not say),
    ``tokens_a_word`` for the built-in words, ``counted_by`` tokenize or usage."""

    model: str
    context: int | None
    tokens_a_word: float | None
    counted_by: str | None


class NotReady(NamedTuple):
    """Why not yet. ``final``: it will not become ready by waiting (wrong model name, no such path)."""

    why: str
    final: bool = False


async def ask_ready(session: aiohttp.ClientSession, server: Server, first: float = 300.0) -> Ready | NotReady:
    """One try. ``first``: seconds for the first answer, which may compile kernels."""
    path = _MODELS
    try:
        models = await asyncio.wait_for(_json(session, "GET", f"{server.url}{path}", server), _TRY)
        model, context = _pick(models, server.model)
        if model is None:
            return NotReady("the server lists no model")
        sample = _sample(context)
        body = {"model": model, "prompt": " ".join(sample), "max_tokens": 1, "temperature": 0.0}
        path = "/v1/completions"
        answer = await asyncio.wait_for(_json(session, "POST", f"{server.url}{path}", server, body), first)
    except Refused as refused:
        return NotReady(_refusal(refused, path), final=refused.status in (401, 403, 404, 405))
    except (asyncio.TimeoutError, TimeoutError):
        return NotReady("no answer in time")
    except Exception as error:  # noqa: BLE001 - aiohttp's errors have no common base with ours
        return NotReady(words_of(error), final=is_unknown_host(error))
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices:
        return NotReady("the answer holds no choice")
    tokens, counted_by = await _count(session, server, model, sample), "tokenize"
    if tokens is None:
        usage = answer.get("usage")
        tokens, counted_by = (usage or {}).get("prompt_tokens") if isinstance(usage, dict) else None, "usage"
    ratio = tokens / len(sample) if _is_count(tokens) else None
    return Ready(model, context, ratio, counted_by if ratio is not None else None)


class Refused(Exception):
    """The server answered with an HTTP error."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"HTTP {status}: {text}")
        self.status, self.text = status, text


def _refusal(refused: Refused, path: str) -> str:
    if path == _MODELS and refused.status in (404, 405):
        return f"it answers HTTP {refused.status} to {path}: no OpenAI-compatible server"
    return f"it answers HTTP {refused.status} to {path}" + (f": {refused.text}" if refused.text else "")


def _pick(models: dict[str, Any], wanted: str) -> tuple[str | None, int | None]:
    """Name and context length: of the wanted model, else of the first."""
    rows = models.get("data")
    rows = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    for row in rows:
        if not wanted or row.get("id") == wanted:
            name, length = row.get("id"), row.get("max_model_len")
            if length is None and isinstance(row.get("meta"), dict):
                length = row["meta"].get("n_ctx_train")  # llama.cpp
            return (
                name if isinstance(name, str) else None,
                length if _is_count(length) else None,
            )
    return wanted or None, None


def _sample(context: int | None) -> tuple[str, ...]:
    """Words to ask with and to count by: as many as are sure to fit."""
    most = len(_SAMPLE) if context is None else context // _TOKENS_A_WORD
    return _SAMPLE[: max(1, most)]


async def _count(
    session: aiohttp.ClientSession, server: Server, model: str, sample: tuple[str, ...]
) -> int | None:
    """Tokens of the sample by /tokenize (vLLM), None where there is none."""
    try:
        body = {"model": model, "prompt": " ".join(sample)}
        answer = await asyncio.wait_for(_json(session, "POST", f"{server.url}/tokenize", server, body), _TRY)
    except Exception:  # noqa: BLE001 - an extra that not every server has
        return None
    count = answer.get("count")
    return count if _is_count(count) else None


def _is_count(value: object) -> TypeGuard[int]:
    """A number of tokens that a server can mean: JSON allows integers that no float can hold."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 40


async def _json(
    session: aiohttp.ClientSession, method: str, url: str, server: Server, body: dict[str, Any] | None = None
) -> dict[str, Any]:
    async with session.request(
        method, url, json=body, headers=server.headers, allow_redirects=False
    ) as response:
        raw = await response.content.read(_MAX_BODY)
        if response.status != 200:
            raise Refused(response.status, body_words(raw))
    value = json.loads(raw)
    if not isinstance(value, dict):
        raise ValueError("the answer is no JSON object")
    return value
