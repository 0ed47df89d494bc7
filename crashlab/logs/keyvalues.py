"""``key=value, key=value`` text (vLLM's engine configuration, SGLang's ServerArgs) taken apart.

Values may hold brackets, quotes and commas. One pass, no recursion, bounded in number and length.
"""

from __future__ import annotations

from collections.abc import Iterator

from crashlab.logs.lazy import Lazy

MAX_KEYS = 512
MAX_VALUE = 512
MAX_TEXT = 64 * 1024

_KEY = Lazy(r"\s{0,8}([A-Za-z_]\w{0,80})=")
_OPEN = "([{<"
_CLOSE = ")]}>"


def key_values(text: str) -> dict[str, str]:
    """The top-level pairs of ``text``; quotes around a value are taken off. Stops at what is no pair."""
    found: dict[str, str] = {}
    for item in _items(text[:MAX_TEXT]):
        pair = _KEY.match(item)
        if pair is None:
            continue
        value = item[pair.end() :].strip()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        found.setdefault(pair.group(1), value[:MAX_VALUE])
        if len(found) >= MAX_KEYS:
            break
    return found


def _items(text: str) -> Iterator[str]:
    """The parts between top-level commas, up to the bracket that closes the whole."""
    depth, start, quote = 0, 0, ""
    for index, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            depth -= 1
            if depth < 0:
                yield text[start:index]
                return
        elif char == "," and depth == 0:
            yield text[start:index]
            start = index + 1
    yield text[start:]
