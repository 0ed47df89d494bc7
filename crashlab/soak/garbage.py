"""Is a text garbage? Cheap detectors over one answer. A detector only says what a text looks like;
whether that means anything is judged against the server's own beginning (:mod:`garbagewatch`)."""

from __future__ import annotations

from typing import NamedTuple

ONE_TOKEN = "one-token"
LOOP = "loop"
FEW_WORDS = "few-words"
CONTROL = "control-characters"
EMPTY = "empty"
KINDS = (ONE_TOKEN, LOOP, FEW_WORDS, CONTROL, EMPTY)

_TAIL = 4096
_MIN_CHARS = 24
_UNIT = 16


class Look(NamedTuple):
    """What one answer looks like. ``unit`` is what is repeated."""

    kinds: tuple[str, ...] = ()
    unit: str | None = None


def look_at(text: str, tokens: int) -> Look:
    """Apply all detectors; linear in the text's length, of which the last 4,096 characters count."""
    if not text.strip():
        # NaN logits decode to nothing when token 0 is a special token: many tokens and no text.
        return Look((EMPTY,)) if tokens > 1 or not text else Look((ONE_TOKEN,), text[:1])
    tail = text[-_TAIL:]
    kinds = []
    unit: str | None = None
    period = smallest_period(tail) if len(tail) >= _MIN_CHARS else None
    if period is not None:
        size = len(period.unit)
        if size <= _UNIT and period.covered >= max(0.9 * len(tail), 12 * size):
            kinds.append(ONE_TOKEN)
            unit = period.unit
        elif period.covered >= max(4 * size, 0.6 * len(tail), 48):
            kinds.append(LOOP)
            unit = period.unit[:80]
    if _few_words(tail):
        kinds.append(FEW_WORDS)
    bad = sum(1 for c in tail if c == "\ufffd" or (c < " " and c not in "\n\r\t") or "\x7f" <= c < "\xa0")
    if bad > 0.2 * len(tail):
        kinds.append(CONTROL)
    return Look(tuple(kinds), unit)


class Period(NamedTuple):
    """``unit`` repeated makes the last ``covered`` characters of a text."""

    unit: str
    covered: int


def smallest_period(text: str) -> Period | None:
    """The repetition at the end of a text, by the failure function of the reversed text (Knuth, Morris
    and Pratt): of all suffixes the one that is covered best by its smallest period."""
    reverse = text[::-1]
    size = len(reverse)
    border = [0] * size
    best: Period | None = None
    k = 0
    for i in range(1, size):
        while k and reverse[i] != reverse[k]:
            k = border[k - 1]
        if reverse[i] == reverse[k]:
            k += 1
        border[i] = k
        period = i + 1 - k
        if 2 * period <= i + 1:
            best = Period(text[-period:], i + 1)
    return best


def _few_words(text: str) -> bool:
    """Whether a text of at least 64 words has hardly any different ones."""
    words = text.split()
    return len(words) >= 64 and len(set(words)) < 0.1 * len(words)
