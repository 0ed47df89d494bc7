"""``crashlab demo``: the whole pipeline on any machine, with a simulated server and a recorded crash."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

import click

from crashlab.cli.voice import result
from crashlab.cli.voice import tell as say
from crashlab.cli.width import page_width

if TYPE_CHECKING:
    from crashlab.capture.config import RunConfig
    from crashlab.cli.soakrun import SoakRun
    from crashlab.facts import Report
    from crashlab.rundir.writer import RunWriter
    from crashlab.soak.settings import SoakSettings


class Scene(NamedTuple):
    """What is planted: the server's arguments, the verdict it must lead to, what was planted in words."""

    arguments: tuple[str, ...]
    verdict: str
    planted: str
    seconds: float = 12.0
    ready_within: float = 20.0


_SCENES = {
    "fault": Scene(
        ("--after", "400"),
        "gpu-fault",
        "the engine dies of a recorded H200 fault in 'epilogue_store', the traceback blames an event "
        "synchronize, and the server exits with 0",
    ),
    "stall": Scene(
        ("--after", "200"),
        "stall",
        "the engine stops without a word, /health goes on to say 200, and a recorded H200 hang is what its "
        "GPU dump shows",
        25.0,
    ),
    "garbage": Scene(
        ("--after", "800", "--step-ms", "3"), "garbage", "every token becomes '!', as after NaN logits", 20.0
    ),
    "exit0": Scene(("--after", "200"), "host-death", "the engine is killed, and the server exits with 0"),
    "slow-prefill": Scene(
        ("--after", "200", "--slow-seconds", "9"), "no-fault", "a long prefill that looks like a stall", 18.0
    ),
    "never-ready": Scene((), "never-ready", "the server starts and never answers", 5.0, 5.0),
}


@click.command()
@click.option(
    "--scenario", type=click.Choice(tuple(_SCENES)), default="fault", show_default=True, help="What happens."
)
@click.option(
    "--out", type=click.Path(), metavar="DIR", help="Run directory. Default: ./crashlab-runs/UTC-demo/"
)
@click.option("--fast", is_flag=True, help="Post-mortem without cuda-gdb and nvdisasm.")
@click.option("-v", "--verbose", is_flag=True, help="The whole report.")
def demo(scenario: str, out: str | None, fast: bool, verbose: bool) -> int:
    """Watch the whole pipeline work, without a GPU: load, crash, evidence, report.

    A small real HTTP server speaks the OpenAI protocol and vLLM's metrics. It is started and
    supervised like any other, loaded by the real client, and dies the way vLLM dies, with driver
    lines, traceback and GPU core dump that were recorded on an H200.

    \b
    Examples:
      crashlab demo
      crashlab demo --scenario stall --out ./stall-demo

    Exit code: 0 if crashlab found what was planted, 1 if not, 130 interrupted.
    """
    from crashlab.cli.soakrun import SoakRun, Wanted, need_packages

    need_packages()
    scene = _SCENES[scenario]
    port = _free_port()
    argv = (
        sys.executable,
        "-m",
        "crashlab.demo",
        "--port",
        str(port),
        "--scenario",
        scenario,
        *scene.arguments,
    )
    from crashlab.rundir.writer import RunWriter

    writer = RunWriter.create(out, ("demo",))
    say(f"planted: {scene.planted}")
    say(f"evidence goes to {writer.path}")
    wanted = Wanted(
        _settings(scene, port), writer, _config(writer, argv, scenario), fast=fast, plain_every=3.0
    )
    run = SoakRun(wanted)
    run.go()
    return _tell(run, scene, scenario, verbose=verbose)


def _tell(run: SoakRun, scene: Scene, scenario: str, *, verbose: bool) -> int:
    from crashlab.cli.soakrun import INTERRUPTED
    from crashlab.report import text
    from crashlab.report.kinds import spoken

    report = run.verdict
    if report is None:
        return 1
    if run.code == INTERRUPTED:
        result(text.render(report, verbose=verbose, width=page_width()))
        return INTERRUPTED
    result(text.render(report, verbose=verbose, width=page_width()))
    found = report.verdict.kind == scene.verdict and _as_planted(run, report, scenario)
    said = "as planted" if found else f"but {spoken(scene.verdict)} was planted"
    say(f"the verdict is {spoken(report.verdict.kind)}, {said}; soak would exit with {run.code}")
    return 0 if found else 1


def _as_planted(run: SoakRun, report: Report, scenario: str) -> bool:
    """Not only the kind: the kernel, and the states on the way."""
    if scenario == "fault":
        kernel = report.verdict.kernel
        return kernel is not None and "epilogue_store" in (kernel.name or kernel.mangled or "")
    if scenario == "slow-prefill":
        return "PREFILLING" in run.states and "STALLED" not in run.states
    return True


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _settings(scene: Scene, port: int) -> SoakSettings:
    from crashlab.soak.budget import Budget
    from crashlab.soak.progress import Limits
    from crashlab.soak.settings import SoakSettings
    from crashlab.soak.shapes import Sizes

    return SoakSettings(
        f"http://127.0.0.1:{port}",
        clients=12,
        sizes=Sizes((16, 256), (8, 64)),
        budget=Budget(scene.seconds),
        limits=Limits(stall=5.0, prefill=60.0),
        canary_every=100,
        ready_within=scene.ready_within,
        probe_interval=0.5,
    )


def _config(writer: RunWriter, argv: tuple[str, ...], scenario: str) -> RunConfig:
    from crashlab.capture.config import RunConfig
    from crashlab.capture.plan import plan_environment
    from crashlab.capture.session import describe

    # The recorded crash must find its place whatever the shell has set for real ones.
    base = {k: v for k, v in os.environ.items() if not k.startswith("CUDA_")}
    config = RunConfig(
        argv, base, plan_environment(base, writer.path), os.getcwd(), linger=2.0, grace=3.0, sinks=(-1, -1)
    )
    describe(writer, config, {"scenario": scenario})
    return config
