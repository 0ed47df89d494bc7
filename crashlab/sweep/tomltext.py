"""TOML with errors that name the file, the table and what belongs there; unknown keys are errors, too."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from typing import Any

from crashlab.errors import UsageError
from crashlab.inputfile import parse_toml
from crashlab.soak.budget import parse_duration

LIMIT = 4 << 20
_LONGEST = 10 * 365 * 86_400.0


def parse(text: str, where: str) -> Table:
    """The root table. Raises UsageError."""
    if len(text) > LIMIT:
        raise UsageError(f"{where} is longer than {LIMIT:,} characters.", hint="A plan is a small TOML file.")
    try:
        return Table(parse_toml(text), where)
    except ValueError as error:
        raise UsageError(
            f"{where} is no TOML: {str(error)[:200]}",
            hint='The smallest plan is the line [levers] and below it a lever, such as cudagraph-mode = ["NONE"]; '
            "'crashlab sweep --list-levers' has the others.",
        ) from error


class Table:
    """A table whose keys are taken one by one; :meth:`done` complains about those that nobody took."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self.where = where
        self._values = values
        self._taken: set[str] = set()

    def at(self, where: str) -> Table:
        """The same table under another name for its errors."""
        self.where = f"{self.where}: {where}" if where else self.where
        return self

    def wrong(self, key: str, expected: str) -> UsageError:
        """The error for a key."""
        return UsageError(
            f"{self.where}: {key!r} must be {expected}.",
            hint="'crashlab sweep PLAN --dry-run' checks a plan and runs nothing.",
        )

    def names(self) -> list[str]:
        """All keys, in the file's order."""
        return list(self._values)

    def take(self, key: str) -> Any:
        """Whatever stands there; None if nothing does."""
        self._taken.add(key)
        return self._values.get(key)

    def text(self, key: str) -> str | None:
        """A non-empty string."""
        value = self.take(key)
        if value is not None and (not isinstance(value, str) or not value or "\x00" in value):
            raise self.wrong(key, "a non-empty string")
        return value

    def word(self, key: str) -> str | None:
        """A string, a number or a truth value, as text (``true`` is "on")."""
        value = self.take(key)
        return None if value is None else self.as_word(key, value)

    def as_word(self, key: str, value: object) -> str:
        """One value as text."""
        if isinstance(value, bool):
            return "on" if value else "off"
        if isinstance(value, (int, float)) and math.isfinite(value):
            return str(value)
        if isinstance(value, str) and value and "\x00" not in value:
            return value
        raise self.wrong(key, "a string, a finite number, true or false")

    def duration(self, key: str) -> float | None:
        """Seconds of ``"90s"``, ``"2h"`` or a number; more than none of them and no more than ten years."""
        word = self.word(key)
        if word is None:
            return None
        try:
            seconds = parse_duration(word)
        except UsageError:
            seconds = 0.0
        if not 0 < seconds <= _LONGEST:
            raise self.wrong(key, f"a time such as 90s, 50m or 1h30m, not {word!r}")
        return seconds

    def words(self, key: str) -> tuple[str, ...]:
        """One such value, or a list of them."""
        value = self.take(key)
        if value is None:
            return ()
        values = value if isinstance(value, list) else [value]
        return tuple(self.as_word(key, one) for one in values)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings."""
        value = self.take(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(
            isinstance(one, str) and "\x00" not in one for one in value
        ):
            raise self.wrong(key, "a list of strings")
        return tuple(value)

    def flag(self, key: str) -> bool | None:
        """true or false."""
        value = self.take(key)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def number(self, key: str, low: float = 0.0) -> float | None:
        """A number above ``low``."""
        value = self.take(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low < value < 1e15:
            raise self.wrong(key, f"a number above {low:g}")
        return float(value)

    def whole(self, key: str, low: int = 0, high: int = 1_000_000) -> int | None:
        """A whole number from ``low`` to ``high``."""
        value = self.take(key)
        if value is not None and (
            isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high
        ):
            raise self.wrong(key, f"a whole number from {low} to {high}")
        return value

    def text_map(self, key: str) -> dict[str, str]:
        """A table of strings, numbers and truth values, as text."""
        value = self.take(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.wrong(key, "a table")
        return {name: self.as_word(f"{key}.{name}", one) for name, one in value.items()}

    def command(self, key: str) -> tuple[str, ...]:
        """A command: a list of words, or one string that is split as a shell would (no shell runs it)."""
        return self._command(key, self.take(key))

    def commands(self, key: str) -> tuple[tuple[str, ...], ...]:
        """One command or a list of them."""
        value = self.take(key)
        if isinstance(value, list) and value and all(isinstance(one, list) for one in value):
            return tuple(self._command(key, one) for one in value)
        found = self._command(key, value)
        return (found,) if found else ()

    def _command(self, key: str, value: object) -> tuple[str, ...]:
        if value is None:
            return ()
        words = value
        if isinstance(value, str):
            try:
                words = shlex.split(value)
            except ValueError as error:
                raise self.wrong(key, f"a command ({error})") from error
        if not isinstance(words, list) or not all(isinstance(w, str) and "\x00" not in w for w in words):
            raise self.wrong(key, "a list of words, or one string")
        if not words:
            raise self.wrong(key, "a command that is not empty")
        return tuple(words)

    def table(self, key: str) -> Table:
        """A table; an empty one if it is not there."""
        value = self.take(key)
        if value is None:
            return Table({}, f"{self.where}: [{key}]")
        if not isinstance(value, dict):
            raise self.wrong(key, "a table")
        return Table(value, f"{self.where}: [{key}]")

    def tables(self, key: str) -> list[Table]:
        """A list of tables."""
        value = self.take(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            raise self.wrong(key, f"a list of tables, [[{key}]]")
        return [Table(one, f"{self.where}: [[{key}]] {at}") for at, one in enumerate(value, 1)]

    def done(self) -> None:
        """Raises UsageError if a key was not taken: a misspelt key must not be ignored."""
        left = [key for key in self._values if key not in self._taken]
        if left:
            import difflib

            near = difflib.get_close_matches(left[0], self._taken, n=1)
            raise UsageError(
                f"{self.where}: {left[0]!r} is no key here.",
                hint=f"Did you mean {near[0]!r}?"
                if near
                else f"Known: {', '.join(sorted(self._taken)) or 'none'}.",
            )
