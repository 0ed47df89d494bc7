"""Which writing systems a text uses, by ranges of code points: a cheap sign that an answer left its language."""

from __future__ import annotations

import collections

_RANGES = (
    (0x0041, 0x024F, "Latin"),
    (0x1E00, 0x1EFF, "Latin"),
    (0x0370, 0x03FF, "Greek"),
    (0x0400, 0x052F, "Cyrillic"),
    (0x0530, 0x058F, "Armenian"),
    (0x0590, 0x05FF, "Hebrew"),
    (0x0600, 0x06FF, "Arabic"),
    (0x0750, 0x077F, "Arabic"),
    (0x0900, 0x097F, "Devanagari"),
    (0x0980, 0x0DFF, "Indic"),
    (0x0E00, 0x0E7F, "Thai"),
    (0x10A0, 0x10FF, "Georgian"),
    (0x1100, 0x11FF, "Hangul"),
    (0x3040, 0x30FF, "Kana"),
    (0x3400, 0x4DBF, "Han"),
    (0x4E00, 0x9FFF, "Han"),
    (0xAC00, 0xD7AF, "Hangul"),
    (0x20000, 0x2FA1F, "Han"),
)
_TOGETHER = {"Kana": "Han"}
"""Japanese writes both in one sentence."""


def script_of(char: str) -> str | None:
    """The writing system of a letter; "other" for one of another block, None for what is no letter."""
    if not char.isalpha():
        return None
    code = ord(char)
    for low, high, name in _RANGES:
        if low <= code <= high:
            return _TOGETHER.get(name, name)
    return "other"


def scripts(text: str) -> collections.Counter[str]:
    """Letters of each writing system."""
    return collections.Counter(name for char in text if (name := script_of(char)) is not None)
