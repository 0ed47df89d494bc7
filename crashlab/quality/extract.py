"""Numbers in answers: in the strict form that the examples show, and flexibly the last one there is.

GSM8K's own convention ends an answer with ``#### 42``; evaluations report both readings, because a model
that answers right in another form is another finding than one that answers wrong.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from functools import lru_cache

_NUMBER = re.compile(r"-?\$?\d[\d,]*(?:\.\d+)?")
_MAX_DIGITS = 60
_MAX_TEXT = 16 << 10


def number_of(text: str) -> Decimal | None:
    """The number that ``text`` spells: ``-1,234.50``, ``$5``, ``18.``; None if it spells none."""
    plain = text.strip().replace("$", "").replace(",", "").rstrip(".")
    if not plain or len(plain) > _MAX_DIGITS:
        return None
    try:
        value = Decimal(plain)
    except InvalidOperation:
        return None
    return value if value.is_finite() else None


def flexible(text: str) -> Decimal | None:
    """The last number in the text."""
    last = None
    for found in _NUMBER.finditer(text[-_MAX_TEXT:]):
        last = found
    return None if last is None else number_of(last[0])


def strict(text: str, pattern: str) -> Decimal | None:
    """The number in the first group of the first place where ``pattern`` fits."""
    found = _compiled(pattern).search(text[:_MAX_TEXT])
    return None if found is None else number_of(found[1])


@lru_cache(maxsize=16)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
