"""One recorded attempt, from the empty folder to everything that can be known without analysing a dump."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from crashlab.capture.config import AttemptResult, RunConfig
from crashlab.capture.evidence import Means
from crashlab.capture.kmsg import KernelFollower
from crashlab.capture.libraries import duplicates, torch_cuda
from crashlab.capture.machine import machine_facts
from crashlab.capture.samples import Sample
from crashlab.capture.signals import SignalBox
from crashlab.capture.supervise import Say, Supervisor
from crashlab.capture.versions import complete
from crashlab.rundir import layout, redact, retention
from crashlab.rundir.keep import bring_home
from crashlab.rundir.writer import RunWriter


def describe(writer: RunWriter, config: RunConfig, options: Mapping[str, Any]) -> None:
    """Write ``run.json``: command, settings with their origin, confounds, environment, machine."""
    writer.start(
        {
            "argv": redact.command(config.argv),
            "cwd": config.cwd,
            "options": {name: redact.text(str(value)) for name, value in options.items()},
            "settings": [one._asdict() for one in config.plan.settings],
            "confounds": [one._asdict() for one in config.plan.confounds],
            "environment": redact.variables(config.environment),
            "machine": machine_facts(),
            "overflow": writer.overflow,
        }
    )


def run_one(
    config: RunConfig,
    writer: RunWriter,
    box: SignalBox,
    attempt: int,
    *,
    say: Say,
    means: Means | None = None,
    kernel: KernelFollower | None = None,
) -> AttemptResult:
    """Run the program once and settle its record. Raises MissingTool if it cannot be started."""
    supervisor = Supervisor(
        config,
        writer,
        box,
        attempt,
        say=say,
        overflow=writer.overflow,
        means=means,
        kernel=kernel,
    )
    result = supervisor.run()
    settle(config, writer, supervisor.watch.samples(), result)
    return result


def settle(config: RunConfig, writer: RunWriter, samples: list[Sample], result: AttemptResult) -> None:
    """After an attempt: overflow comes home, exact versions are asked for, dumps are thinned out.

    The cap holds for the dumps of all attempts so far; the first of this one is still to be analysed.
    """
    if not bring_home(writer.path, writer.overflow):
        writer.problem(f"part of the output is still in {writer.overflow}")
    if result.suspicious:
        _versions(writer, samples, result.attempt)
    dumps = sorted({*result.dumps, *_cores(writer)})
    for dropped in retention.enforce(dumps, config.max_dumps_bytes, result.dumps[:1]):
        path = os.path.relpath(dropped.path, writer.path)
        shown = dropped.path if path.startswith("..") else path
        writer.event("dump-dropped", attempt=result.attempt, path=shown, bytes=dropped.bytes)


def _cores(writer: RunWriter) -> list[str]:
    folder = writer.file(layout.CORES)
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder)]
    except OSError:
        return []


def _versions(writer: RunWriter, samples: list[Sample], attempt: int) -> None:
    rows = {one.path: one for sample in samples for one in sample.libraries}
    if not rows:
        return
    known = complete(list(rows.values()))
    writer.event(
        "versions",
        attempt=attempt,
        libraries=[one._asdict() for one in known],
        torch_cuda=torch_cuda(known),
    )
    for sample in samples:
        for what in duplicates(sample.libraries):
            writer.event("duplicate-libraries", attempt=attempt, pid=sample.pid, what=what)
