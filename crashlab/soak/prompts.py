"""Where prompt text comes from: the built-in vocabulary, a text file, or the prompts of a JSONL file."""

from __future__ import annotations

import json
import random
from typing import Any, NamedTuple

from crashlab.errors import UnreadableInput
from crashlab.inputfile import open_regular
from crashlab.soak.words import VOCABULARY

_MAX_FILE = 64 << 20
_DEFAULT_TOKENS_A_WORD = 1.4
_FIELDS = ("prompt", "text", "question", "instruction", "input", "content")


class Source(NamedTuple):
    """``words`` are drawn one by one (vocabulary) or as a run (``ordered``: a text); ``whole`` are
    complete prompts. ``tokens_a_word`` is measured on the server when it can be."""

    words: tuple[str, ...] = VOCABULARY
    ordered: bool = False
    whole: tuple[str, ...] = ()
    tokens_a_word: float = _DEFAULT_TOKENS_A_WORD
    name: str = "vocabulary"

    def text(self, rng: random.Random, tokens: int) -> str:
        """About ``tokens`` tokens of text."""
        count = max(1, round(tokens / self.tokens_a_word))
        if self.whole:
            words = rng.choice(self.whole).split()
            if not words:
                return ""
            while len(words) < count:
                words += rng.choice(self.whole).split() or ["."]
            return " ".join(words[:count])
        if self.ordered:
            start = rng.randrange(len(self.words))
            return " ".join(self.words[(start + i) % len(self.words)] for i in range(count))
        return " ".join(rng.choices(self.words, k=count))


def load_source(path: str) -> Source:
    """A text file, or a JSONL file when every line of its beginning is a JSON object.

    Raises UnreadableInput if it cannot be read or holds no text.
    """
    try:
        with open_regular(path, "prompts") as file:
            text = file.read(_MAX_FILE).decode("utf-8", "replace")
    except OSError as error:
        raise UnreadableInput(f"Cannot read the prompts {path}: {error.strerror}.") from error
    lines = [line for line in text.splitlines() if line.strip()]
    objects = [_object(line) for line in lines[:20]]
    if lines and all(one is not None for one in objects):
        prompts = tuple(p for line in lines if (p := prompt_of(_object(line))))
        if prompts:
            return Source(whole=prompts, name=path)
        raise UnreadableInput(
            f"No line of {path} has a prompt.",
            hint=f"A JSONL line needs one of {', '.join(_FIELDS)}, or messages or conversations.",
        )
    words = tuple(text.split())
    if not words:
        raise UnreadableInput(f"{path} holds no text.")
    return Source(words=words, ordered=True, name=path)


def prompt_of(record: dict[str, Any] | None) -> str | None:
    """The prompt of one record: a known field, or the first message of a conversation."""
    if record is None:
        return None
    for name in _FIELDS:
        value = record.get(name)
        if isinstance(value, str) and value.strip():
            return value
    for name in ("messages", "conversations"):
        talk = record.get(name)
        if isinstance(talk, list) and talk and isinstance(talk[0], dict):
            value = talk[0].get("content") or talk[0].get("value")
            if isinstance(value, str) and value.strip():
                return value
    return None


def _object(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
