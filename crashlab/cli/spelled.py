"""Values of options as people write them: sizes, times, counts, ranges, JSON; errors that name the option."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import click

from crashlab.errors import CrashlabError, UsageError

_SIZE_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class FiniteRange(click.FloatRange):
    """click's range of numbers lets ``nan`` through every bound, and ``inf`` where there is no upper one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, or a usage error."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


class Spelled(click.types.StringParamType):
    """What ``read`` makes of the text; with ``keep`` the text itself, once it is known to make sense.

    What ``read`` raises becomes a usage error that names the option.
    """

    def __init__(self, read: Callable[[str], Any], *, keep: bool = False) -> None:
        self._read = read
        self._keep = keep

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value, or a usage error."""
        if not isinstance(value, str):
            return value
        try:
            read = self._read(value)
        except CrashlabError as error:
            self.fail(f"{error} {error.hint or ''}".rstrip(), param, ctx)
        return value if self._keep else read


def size(text: str) -> int:
    """``500M`` and ``20GiB`` in bytes. Raises UsageError."""
    plain = text.strip().lower().removesuffix("ib").removesuffix("b")
    unit = plain[-1:] if plain[-1:] in _SIZE_UNITS else ""
    try:
        value = float(plain.removesuffix(unit)) * _SIZE_UNITS[unit]
    except ValueError:
        value = math.nan
    if not 0 <= value < 1 << 63:
        raise UsageError(f"{text!r} is no size.", hint="Write it as 500M, 20G or a number of bytes.")
    return int(value)


def seconds(text: str) -> float:
    """``30``, ``90s``, ``5m``, ``1h30m`` in seconds. Raises UsageError."""
    from crashlab.soak.budget import parse_duration

    return parse_duration(text)


def seconds_or_never(text: str) -> float | None:
    """The same; None for ``never``. Raises UsageError."""
    return None if text == "never" else seconds(text)


def json_object(text: str) -> dict[str, Any]:
    """An object. Raises UsageError for anything else."""
    import json

    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise UsageError(f"{text!r} is no JSON object.", hint="Write it as '{\"top_k\": 1}'.")
    return value


def _count(text: str) -> int:
    from crashlab.soak.budget import parse_count

    return parse_count(text)


def _range(text: str) -> tuple[int, int]:
    from crashlab.soak.budget import parse_range

    return parse_range(text)


SIZE = Spelled(size)
SECONDS = Spelled(seconds)
SECONDS_OR_NEVER = Spelled(seconds_or_never)
TIME = Spelled(seconds, keep=True)
"""Stays as it was written: the run directory records it so."""
COUNT = Spelled(_count, keep=True)
RANGE = Spelled(_range, keep=True)
JSON_OBJECT = Spelled(json_object, keep=True)
