"""From the command line of ``crashlab sweep`` to the plan and the sweep's folder."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any

import click

from crashlab.errors import UsageError

if TYPE_CHECKING:
    from crashlab.sweep.plan import Plan
    from crashlab.sweep.probe import Server

_LIMIT = 4 << 20


def the_one(plans: tuple[str, ...]) -> str:
    """The plan, or the folder of a sweep. Raises UsageError for none and for two."""
    if not plans:
        raise click.UsageError("Which plan? 'crashlab sweep PLAN', or --list-levers for what can be turned.")
    if len(plans) > 1:
        raise click.UsageError(f"{plans[1]!r} comes after the plan: the server's command comes after '--'.")
    return plans[0]


def planned(source: str, command: tuple[str, ...], options: dict[str, Any]) -> tuple[Plan, str]:
    """(the plan, the sweep's folder)."""
    from crashlab.sweep.plan import read_plan
    from crashlab.sweep.runner import is_sweep, plan_of

    prepare = [_words(text) for text in options["prepare"]]
    if is_sweep(source):
        if command or prepare or options["out"]:
            raise UsageError(
                f"{source} has its plan and its command already.", hint=f"'crashlab sweep {source}' goes on."
            )
        return plan_of(source), source
    if os.path.isdir(source):
        raise UsageError(f"{source} is no sweep's folder.", hint="Give a plan, a TOML file.")
    place = os.path.dirname(source)
    is_params = source.endswith(".json")
    text = f"params = {_quoted(os.path.basename(source))}\n" if is_params else _read(source)
    plan = read_plan(
        text,
        source,
        command=command,
        prepare=prepare,
        read_file=lambda name: _read(os.path.join(place, name)),
    )
    if not options["report_only"]:
        from crashlab.cli.sweepload import check_load

        check_load(plan, source, os.getcwd(), files=options["place"] != "ray")
    return plan, options["out"] or os.path.join("crashlab-runs", f"sweep-{plan.name}")


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--prepare cannot be read: {error}.", hint="Quote it for the shell.") from error


def _quoted(text: str) -> str:
    """A JSON string, which is a TOML string, too."""
    import json

    return json.dumps(text)


def _read(path: str) -> str:
    from crashlab.inputfile import open_regular

    with open_regular(path, "plan") as file:
        raw = file.read(_LIMIT + 1)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is no UTF-8 text.", hint="A plan is a TOML file.") from error


def probed(plan: Plan) -> Server:
    """What the server says of itself, unless the plan says it or forbids to ask."""
    from crashlab.sweep.job import ways_of
    from crashlab.sweep.probe import Server, ask
    from crashlab.sweep.setting import environment_of

    server = Server(None, plan.server.version)
    # A command inside an overlay exists only once that is filled.
    if plan.server.help and "{overlay}" not in plan.command[0]:
        found = ask(plan.command, environment_of(os.environ, plan.environment))
        server = found._replace(version=plan.server.version or found.version)
    ways_of(plan, server)
    return server
