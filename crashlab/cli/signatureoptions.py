"""Options that several ``crashlab signatures`` commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])


def catalogue_option(command: _Command) -> _Command:
    """``--catalogue DIR``, repeatable: a tuple of folders as ``folders``."""
    return click.option(
        "--catalogue",
        "folders",
        multiple=True,
        metavar="DIR",
        type=click.Path(readable=False),
        help="A folder of further entries (*.toml). Repeatable. $CRASHLAB_SIGNATURES adds folders too.",
    )(command)


def json_option(command: _Command) -> _Command:
    """``--json`` as ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help="Write JSON.")(command)
