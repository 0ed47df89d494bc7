"""One request to be sent: everything that is needed to send it again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

COMPLETIONS, CHAT = "completions", "chat"
PATHS = {COMPLETIONS: "/v1/completions", CHAT: "/v1/chat/completions"}

_SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "maxLength": 40},
        "count": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 12}, "maxItems": 4},
        "done": {"type": "boolean"},
    },
    "required": ["title", "count", "tags", "done"],
    "additionalProperties": False,
}


class Ask(NamedTuple):
    """``lane`` and ``number`` (with the run's seed and shape) make it again; ``turn`` counts within a
    conversation. ``messages`` alternate user and assistant, beginning with user. ``cancel_after``
    chunks the client hangs up (0: before the first). ``together``: wait until every lane is here.
    """

    lane: int
    number: int
    shape: str
    endpoint: str
    messages: tuple[str, ...]
    max_tokens: int
    temperature: float = 1.0
    ignore_eos: bool = False
    structured: bool = False
    cancel_after: int | None = None
    together: bool = False
    turn: int = 0

    @property
    def prompt_chars(self) -> int:
        """Characters of the whole prompt."""
        return sum(len(message) for message in self.messages)

    def body(self, model: str, extra: Mapping[str, Any] | None = None) -> bytes:
        """The JSON body. ``seed`` is not sent: servers sample requests with a seed one by one, on
        another path than the one to be tested."""
        fields: dict[str, Any] = {
            "model": model,
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if self.endpoint == CHAT:
            roles = ("user", "assistant")
            fields["messages"] = [
                {"role": roles[i % 2], "content": text} for i, text in enumerate(self.messages)
            ]
        else:
            fields["prompt"] = "\n".join(self.messages)
        if self.ignore_eos:
            fields["ignore_eos"] = True
        if self.structured:
            fields["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "note", "schema": _SCHEMA},
            }
        fields.update(extra or {})
        return json.dumps(fields).encode()
