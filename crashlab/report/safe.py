"""Hostile text made harmless: names and log lines come from dumps and servers."""

from __future__ import annotations

_LIMIT = 2000


def one_line(text: str, limit: int = _LIMIT) -> str:
    """The text without control characters, escape codes or direction marks, at most ``limit`` characters.

    What was there is shown (as ``\\x1b`` or ``\\u202e``), so that nothing is hidden and nothing acts.
    """
    if len(text) > limit:
        text = f"{text[:limit]}… ({len(text):,} characters)"
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(char: str) -> str:
    """Every character that Unicode calls unprintable (control, format, surrogate, private) as its escape."""
    if char.isprintable():
        return char
    code = ord(char)
    if char.isspace() and code >= 0xA0:  # no-break and typographic blanks, line and paragraph separator
        return " "
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
