"""Options that every command has which runs a program and records it, and their spellings of sizes and times."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import click

_SIZE_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class FiniteRange(click.FloatRange):
    """click's range of numbers lets ``nan`` through every bound, and ``inf`` where there is no upper one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, or a usage error."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


def size(text: str | None) -> int | None:
    """``500M`` and ``20GiB`` in bytes; click turns the ValueError into a usage error."""
    if text is None:
        return None
    plain = text.strip().lower().removesuffix("ib").removesuffix("b")
    unit = plain[-1:] if plain[-1:] in _SIZE_UNITS else ""
    value = float(plain.removesuffix(unit)) * _SIZE_UNITS[unit]
    if not 0 <= value < 1 << 63:
        raise ValueError("out of range")
    return int(value)


def seconds(text: str | None) -> float | None:
    """``30``, ``90s``, ``5m``, ``1h30m`` in seconds; ``never`` is None. Raises UsageError."""
    if text is None or text == "never":
        return None
    from crashlab.soak.budget import parse_duration

    return parse_duration(text)


def _together(*options: _Decorator) -> _Decorator:
    """One decorator; the options stand in ``--help`` in the order given."""
    return lambda command: functools.reduce(lambda made, option: option(made), reversed(options), command)


evidence_options = _together(
    click.option(
        "--out", type=click.Path(), metavar="DIR", help="Run directory. Default: ./crashlab-runs/UTC-NAME/"
    ),
    click.option(
        "--dump",
        type=click.Choice(["light", "shared", "full"]),
        default="light",
        show_default=True,
        help="What GPU dumps keep: no memory; shared and local memory; everything.",
    ),
    click.option(
        "--no-hang-dumps", is_flag=True, help="Open no pipes through which a hung process can be dumped."
    ),
    click.option(
        "--max-dumps-bytes",
        type=size,
        metavar="SIZE",
        help="Cap for all dumps (20G); first and newest stay.",
    ),
)
"""--out, --dump, --no-hang-dumps, --max-dumps-bytes."""

report_options = _together(
    click.option("--fast", is_flag=True, help="Post-mortem without cuda-gdb and nvdisasm."),
    click.option("-q", "--quiet", is_flag=True, help="Say nothing but the headline."),
    click.option("-v", "--verbose", is_flag=True, help="The whole report."),
)
"""--fast, --quiet, --verbose."""
