"""What users asked and what models answered: taken out of logs and request records."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

_NAMES = (
    r"(?:prompts?|messages|content|text|inputs?|query|question|completion|answer|output_text|generated_text"
    r"|response_text|system_prompt|arguments)"
)
_KEY = re.compile(
    rf"(?i)(?<![\w])[\"']?{_NAMES}[\"']?\s{{0,3}}[:=]\s{{0,3}}(?=[\"'\[])|(?i:\bprompt_token_ids|\btoken_ids)[\"']?\s{{0,3}}[:=]\s{{0,3}}(?=\[)"
)
_BARE = re.compile(
    r"(?i)(?<![\w])(?:prompt|question|completion|answer)s?\s{0,3}[:=]\s{0,3}(?=[^\s\"'\[])"
    r"(?!\d{1,20}(?:\.\d{1,20})?\s{0,3}(?:tok|%|ms\b|s\b|[,;)\]}]|$))"
)
_AFTER = ", params"
"""vLLM's request line goes on with the sampling parameters; they hold nobody's words."""
_CONTENT = frozenset((
    "prompt", "prompts", "messages", "content", "text", "input", "inputs", "query", "question",
    "completion", "answer", "output", "output_text", "generated_text", "response", "response_text",
    "system_prompt", "arguments", "prompt_token_ids", "token_ids", "choices", "delta", "body",
    "documents",
))  # fmt: skip
REQUEST_FIELDS = frozenset((
    "t", "time", "sent", "first", "last", "first_byte", "last_byte", "ended", "elapsed", "ttft", "itl",
    "tokens", "tokens_in", "tokens_out", "prompt_tokens", "completion_tokens", "total_tokens", "finish",
    "finish_reason", "error", "error_class", "status", "http_status", "seed", "shape", "index",
    "attempt", "stage", "stream", "endpoint", "id", "n", "concurrency", "ok", "garbage",
))  # fmt: skip
"""The fields of a request record that hold no user's words; all others are left out."""


def spans(text: str) -> Iterator[tuple[int, int]]:
    """What stands behind a key that says prompt, message or answer: a string, a list, else the rest of the line."""
    yield from _quoted(text)
    at = 0
    while (match := _BARE.search(text, at)) is not None:
        line = text.find("\n", match.end())
        line = len(text) if line < 0 else line
        after = text.find(_AFTER, match.end(), line)
        at = line if after < 0 else after
        yield match.end(), at


def _quoted(text: str) -> Iterator[tuple[int, int]]:
    at = 0
    while True:
        match = _KEY.search(text, at)
        if match is None:
            return
        end = _end(text, match.end())
        yield match.end(), end
        at = max(end, match.end() + 1)


def _end(text: str, start: int) -> int:
    """Where the literal that begins at ``start`` ends: the closing quote, or the bracket that closes a list."""
    opener = text[start]
    if opener in "\"'":
        return _string_end(text, start)
    depth, at = 0, start
    while at < len(text):
        char = text[at]
        if char in "\"'":
            at = _string_end(text, at)
            continue
        depth += (char in "[{") - (char in "]}")
        at += 1
        if depth == 0:
            return at
    return len(text)


def _string_end(text: str, start: int) -> int:
    quote, at = text[start], start + 1
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text[at] == quote:
            return at + 1
        else:
            at += 1
    return len(text)


def record_without_words(row: Any) -> Any:
    """One request record with the fields that cannot hold a user's words; others are named, not shown."""
    if not isinstance(row, dict):
        return "<removed>"
    kept = {
        str(key): value
        for key, value in row.items()
        if str(key) in REQUEST_FIELDS
        and (value is None or isinstance(value, (int, float, bool)) or _word(value))
    }
    gone = sorted(str(key)[:40] for key in row if str(key) not in kept)
    return {**kept, "removed": gone[:40]} if gone else kept


def _word(value: Any) -> bool:
    """A label such as ``length`` or ``connection-reset``, not a sentence."""
    return isinstance(value, str) and len(value) <= 64 and not any(char.isspace() for char in value)


def json_without_words(value: Any, clean: Callable[[str], str], depth: int = 0) -> Any:
    """JSON with the values of prompt-like keys replaced and every other string cleaned; bounded in depth."""
    if depth > 30:
        return "<removed: nested too deeply>"
    if isinstance(value, dict):
        return {
            clean(str(key)): _removed(item)
            if str(key).lower() in _CONTENT
            else json_without_words(item, clean, depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [json_without_words(item, clean, depth + 1) for item in value]
    return clean(value) if isinstance(value, str) else value


def _removed(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    size = len(value) if isinstance(value, (str, list, dict)) else 1
    return f"<prompt or answer removed: {size} {'characters' if isinstance(value, str) else 'items'}>"
