"""``[load]`` of a sweep's plan is held against the options of the command that will be run, before anything runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from crashlab.errors import CrashlabError, UsageError

if TYPE_CHECKING:
    from crashlab.soak.settings import SoakSettings
    from crashlab.sweep.plan import Plan

_SWITCH = ("on", "off")
_FILES = ("prompts", "replay")
_PORT = "8000"
"""Stands for {port}, which is only known when a run begins."""


def check_load(plan: Plan, where: str, cwd: str, *, files: bool = True) -> None:
    """Raises UsageError that names the plan and the key for a value that ``crashlab soak`` (or ``run``) refuses.

    ``cwd``: where the runs will be made. ``files`` False: files that the plan names are not looked for, since
    other machines make the runs.
    """
    for key, value in plan.load.items():
        if not files and key in _FILES:
            continue
        with _named(plan, where, key):
            _check(plan, key, value.replace("{port}", _PORT), cwd)


@contextmanager
def _named(plan: Plan, where: str, key: str) -> Iterator[None]:
    """An error of the command's parser, under the name that its cause has in the plan."""
    try:
        yield
    except click.ClickException as error:
        raise _wrong(plan, where, key, error.message) from error
    except CrashlabError as error:
        raise _wrong(plan, where, key, str(error), error.hint) from error


def _wrong(plan: Plan, where: str, key: str, why: str, hint: str | None = None) -> UsageError:
    return UsageError(
        f"{where}: [load]: {key} = {plan.load[key]!r} is not accepted: {why}",
        hint=hint or f"'crashlab {plan.mode} --help' says what this option takes.",
    )


def _check(plan: Plan, key: str, value: str, cwd: str) -> None:
    from crashlab.sweep.job import SWITCHES
    from crashlab.sweep.plan import SOAK

    if key in SWITCHES:
        if value not in _SWITCH:
            raise UsageError("It must be true or false.")
        return
    if key in _FILES:
        value = os.path.join(cwd, value)
    if plan.mode != SOAK:
        from crashlab.cli.run import run

        run.make_context("run", [f"--{key}={value}", "--", "x"])
        return
    settings = _settings(key, value)
    if settings.replay is not None:
        from crashlab.soak.prompts import Source
        from crashlab.soak.replay import load_replay

        load_replay(settings.replay, Source())


def _settings(key: str, value: str) -> SoakSettings:
    from crashlab.cli.soak import settings_of, soak

    options = soak.make_context("soak", [f"--{key}={value}", "--", "x"]).params
    return settings_of(("x",), options)
