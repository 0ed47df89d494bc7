"""Options that every command has which runs a program and records it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from crashlab.cli.spelled import SIZE
from crashlab.errors import UsageError

_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


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
        type=SIZE,
        metavar="SIZE",
        help="Cap for all dumps (20G); first and newest stay.",
    ),
)
"""--out, --dump, --no-hang-dumps, --max-dumps-bytes."""


def _loudness(context: click.Context, parameter: click.Parameter, value: bool) -> bool:
    """Callback of -q and -v, which click takes in the order that they were written."""
    other = "verbose" if parameter.name == "quiet" else "quiet"
    if value and context.params.get(other):
        raise UsageError("-q and -v contradict each other.", hint="Leave one of them out.")
    return value


report_options = _together(
    click.option("--fast", is_flag=True, help="Post-mortem without cuda-gdb and nvdisasm."),
    click.option("-q", "--quiet", is_flag=True, callback=_loudness, help="Say nothing but the headline."),
    click.option("-v", "--verbose", is_flag=True, callback=_loudness, help="The whole report."),
)
"""--fast, --quiet, --verbose."""
