"""Patterns that are compiled when first used.

This room has about 150 patterns; compiling all of them costs some 50 ms, and one log uses few.
"""

from __future__ import annotations

import re
from collections.abc import Iterator


class Lazy:
    """A regular expression with the methods of :class:`re.Pattern` that this room uses."""

    __slots__ = ("_compiled", "_flags", "pattern")

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.pattern = pattern
        self._flags = flags
        self._compiled: re.Pattern[str] | None = None

    def _get(self) -> re.Pattern[str]:
        compiled = self._compiled
        if compiled is None:
            compiled = self._compiled = re.compile(self.pattern, self._flags)
        return compiled

    def match(self, text: str, start: int = 0) -> re.Match[str] | None:
        """As :meth:`re.Pattern.match`."""
        return self._get().match(text, start)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """As :meth:`re.Pattern.fullmatch`."""
        return self._get().fullmatch(text)

    def search(self, text: str, start: int = 0) -> re.Match[str] | None:
        """As :meth:`re.Pattern.search`."""
        return self._get().search(text, start)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """As :meth:`re.Pattern.finditer`."""
        return self._get().finditer(text)

    def sub(self, replacement: str, text: str) -> str:
        """As :meth:`re.Pattern.sub`."""
        return self._get().sub(replacement, text)
