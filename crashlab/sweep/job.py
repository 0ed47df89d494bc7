"""One run as an order: all that any machine needs to make it, as plain values."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import NamedTuple

from crashlab.errors import UsageError
from crashlab.sweep.facts import HOURS, STEPS, Setting
from crashlab.sweep.lever import OVERLAY, Lever, Way
from crashlab.sweep.plan import BASELINE, SOAK, Plan
from crashlab.sweep.probe import Server, way_for
from crashlab.sweep.schedule import Task
from crashlab.sweep.setting import Launch, apply

TOKEN = "CRASHLAB_SWEEP_RUN"
"""The variable that marks every process of a run, so that a later crashlab knows them again."""
SWITCHES = ("ignore-eos", "no-hang-dumps", "fast")
"""Options without a value; a plan says true or false."""


class Check(NamedTuple):
    """A lever to look at after the run. ``asked``: this arm names it; ``value`` None: unset."""

    lever: Lever
    way: Way
    asked: bool
    value: str | None


class Job(NamedTuple):
    """``argv`` and ``options`` may hold ``{port}`` and ``{overlay}``. ``folder``: the sweep's own; ``rundir``
    relative to it. ``prepare`` fills ``overlay`` (a name below ``overlays/``), None: nothing to fill.
    ``token`` marks the run's processes."""

    run: int
    arm: str
    number: int
    mode: str
    argv: tuple[str, ...]
    options: tuple[str, ...]
    variables: Mapping[str, str | None]
    checks: tuple[Check, ...]
    requested: tuple[Setting, ...]
    folder: str
    rundir: str
    token: str
    cwd: str
    seconds: float
    server_info: bool
    overlay: str | None = None
    prepare: tuple[tuple[str, ...], ...] = ()
    values: Mapping[str, str] = {}


def ways_of(plan: Plan, server: Server) -> dict[str, Way]:
    """How each lever of the plan is set on this server. Raises UsageError for one that it does not have."""
    return {name: way_for(plan.levers[name], server) for name in plan.turned}


def job_of(
    plan: Plan,
    ways: Mapping[str, Way],
    task: Task,
    *,
    run: int,
    folder: str,
    cwd: str,
    token: str,
    replay: str | None = None,
) -> Job:
    """The order for one run of one arm. ``replay``: the request log that is sent again."""
    arm = plan.arm(task.arm)
    launch = Launch(plan.command, dict(plan.environment))
    for setting in arm.levers:
        launch = apply(launch, plan.levers[setting.lever], ways[setting.lever], setting.value)
    if plan.server.info:
        launch = launch._replace(variables={**launch.variables, "VLLM_SERVER_DEV_MODE": "1"})
    overlays = {s.lever: s.value for s in arm.levers if ways[s.lever].kind == OVERLAY and s.value is not None}
    prepare = _prepare(plan, overlays)
    name = slug(" ".join(f"{k}-{v}" for k, v in sorted(overlays.items())) or arm.name) if prepare else None
    named = {setting.lever: setting.value for setting in arm.levers}
    return Job(
        run=run,
        arm=arm.name,
        number=task.number,
        mode=plan.mode,
        argv=launch.argv,
        options=options_of(plan, task, replay),
        variables=launch.variables,
        checks=tuple(
            Check(plan.levers[lever], ways[lever], lever in named, named.get(lever)) for lever in plan.turned
        ),
        requested=arm.levers,
        folder=folder,
        rundir=f"arms/{run:04d}-{slug(arm.name)}",
        token=token,
        cwd=cwd,
        seconds=plan.budget.run_for,
        server_info=plan.server.info,
        overlay=name,
        prepare=prepare,
        values={lever: value for lever, value in overlays.items() if value is not None},
    )


def options_of(plan: Plan, task: Task, replay: str | None) -> tuple[str, ...]:
    """Options of ``crashlab soak`` (or ``run``) for one run: the plan's load, the budget, the seed."""
    out: list[str] = []
    for key, value in plan.load.items():
        if key in SWITCHES:
            out += [f"--{key}"] if value == "on" else []
        elif key != "replay" or replay is None:
            out += [f"--{key}", value]
    if plan.mode != SOAK:
        return tuple(out)
    seconds = plan.budget.run_for
    if task.exposure is not None:
        if plan.budget.unit == HOURS:
            seconds = min(seconds, task.exposure * 3600)
        else:
            name = "--steps" if plan.budget.unit == STEPS else "--requests"
            out += [name, str(max(1, math.ceil(task.exposure)))]
    out += ["--for", f"{seconds:.3f}s", "--seed", str(plan.seed + task.number)]
    return tuple([*out, "--replay", replay] if replay is not None else out)


def _prepare(plan: Plan, overlays: Mapping[str, str | None]) -> tuple[tuple[str, ...], ...]:
    """The commands that fill this arm's overlay: the plan's for the lever, or else the catalogue's."""
    out: list[tuple[str, ...]] = []
    for lever in overlays:
        out += plan.prepare.get(lever) or plan.prepare.get("*") or plan.levers[lever].prepare
    return tuple(dict.fromkeys(out))


def unused(folder: str, rundir: str) -> str:
    """What a cut-off run left stays as evidence; the next one gets a folder of its own."""
    name, at = rundir, 1
    while os.path.exists(os.path.join(folder, name)):
        at += 1
        name = f"{rundir}.{at}"
    return name


def slug(text: str) -> str:
    """A short file name for an arm."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in text)
    return plain[:60].strip("-.") or BASELINE


def check_parallel(plan: Plan, slots: int) -> None:
    """Raises UsageError if several servers would listen on one port."""
    if slots > 1 and not any("{port}" in word for word in plan.command):
        raise UsageError(
            "Several servers at a time need ports of their own.",
            hint="Write --port {port} in the plan's command; a free one is filled in for each run.",
        )
