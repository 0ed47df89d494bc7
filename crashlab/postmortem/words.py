"""Small words in sentences: the plural of a count, and ``a`` or ``an`` by how the next word is spoken."""

from __future__ import annotations

from collections.abc import Iterable

_SPOKEN_WITH_VOWEL = ("11", "18")


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """``1 byte``, ``0 bytes``, ``1,024 bytes``; ``plural`` where an s does not make it."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def article(following: int | str) -> str:
    """``a`` or ``an``: an 8-byte, an 11-byte, an 18,000-byte, but a 110-byte access; an atomic, a load."""
    if isinstance(following, str):
        return "an" if following[:1].lower() in tuple("aeiou") else "a"
    digits = str(abs(following))
    lead = digits[: (len(digits) - 1) % 3 + 1]
    return "an" if lead[0] == "8" or lead in _SPOKEN_WITH_VOWEL else "a"


def joined(reasons: Iterable[str]) -> str:
    """``one; two``: where a reason is a sentence, its full stop does not stand before the semicolon."""
    *before, last = ("", *reasons)
    return "; ".join([*(reason.removesuffix(".") for reason in before[1:]), last])
