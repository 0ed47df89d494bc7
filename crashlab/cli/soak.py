"""``crashlab soak``: load a server until it faults, stalls or talks garbage."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any

import click

from crashlab.cli.recordingoptions import evidence_options, report_options
from crashlab.cli.spelled import COUNT, JSON_OBJECT, RANGE, TIME, FiniteRange
from crashlab.cli.unusable import warn_of_variable
from crashlab.cli.voice import result
from crashlab.cli.voice import tell as say
from crashlab.cli.width import page_width
from crashlab.errors import UsageError

if TYPE_CHECKING:
    from crashlab.capture.config import RunConfig
    from crashlab.rundir.writer import RunWriter
    from crashlab.soak.settings import SoakSettings

# Spelled out: importing the load's rooms would cost every --help their packages.
_SHAPES = (
    "fresh",
    "growing",
    "shared-prefix",
    "prefill-storm",
    "decode-heavy",
    "json",
    "cancel-churn",
    "mixed",
)


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, metavar="[-- vllm serve MODEL...]", type=click.UNPROCESSED)
@click.option("--url", metavar="URL", help="Load a server that runs already; else where the command listens.")
@click.option(
    "--shape", type=click.Choice(_SHAPES), default="mixed", show_default=True, help="Shape of the load."
)
@click.option(
    "--clients", type=click.IntRange(1, 4096), default=16, show_default=True, help="Requests at a time."
)
@click.option(
    "--input-tokens", type=RANGE, default="64:1024", show_default=True, metavar="A:B", help="Prompt sizes."
)
@click.option(
    "--output-tokens", type=RANGE, default="16:256", show_default=True, metavar="A:B", help="Answer sizes."
)
@click.option("--ignore-eos", is_flag=True, help="Every answer has its full length (vLLM, SGLang).")
@click.option("--temperature", type=FiniteRange(0.0), default=1.0, show_default=True, help="Sampling.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same prompts.")
@click.option("--prompts", type=click.Path(), metavar="FILE", help="Text or JSONL to take prompts from.")
@click.option("--replay", type=click.Path(), metavar="RUNDIR", help="Send a recorded soak's requests again.")
@click.option("--load-cmd", metavar="CMD", help="Another load generator; {url} and {model} are filled in.")
@click.option("--model", default="", metavar="NAME", help="Model name; default: the first the server lists.")
@click.option("--extra", type=JSON_OBJECT, metavar="JSON", help="More fields for every request.")
@click.option(
    "--for", "budget_for", type=TIME, metavar="TIME", help="End after this long under load (50m, 24h)."
)
@click.option("--steps", type=COUNT, metavar="N", help="End after so many engine steps (20k).")
@click.option("--requests", type=COUNT, metavar="N", help="End after so many answered requests.")
@click.option("--until-fault", is_flag=True, help="No budget: go on until something is found (the default).")
@click.option(
    "--repeat", type=click.IntRange(1), default=1, show_default=True, help="Attempts, one fault each."
)
@click.option(
    "--stall-after",
    type=TIME,
    default="120",
    show_default=True,
    metavar="TIME",
    help="Without any sign of progress.",
)
@click.option(
    "--prefill-limit", type=TIME, default="900", show_default=True, metavar="TIME", help="Without any token."
)
@click.option(
    "--on-stall", type=click.Choice(["end", "note"]), default="end", show_default=True, help="End, or go on."
)
@click.option(
    "--ready-within", type=TIME, default="30m", show_default=True, metavar="TIME", help="For a first answer."
)
@click.option(
    "--canary-every", type=int, default=200, show_default=True, help="Requests between canaries; 0: none."
)
@click.option(
    "--quality",
    "questions",
    type=click.IntRange(1),
    is_flag=False,
    flag_value=200,
    metavar="[N]",
    help="Ask a server that came through N exact questions (200): does it still talk sense?",
)
@evidence_options
@click.option("--json-lines", is_flag=True, help="Progress as JSON lines on stderr.")
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
@report_options
def soak(command: tuple[str, ...], **options: Any) -> int:
    """Load a server until it faults, stalls, talks garbage, or the budget is spent.

    With a command the server is started and supervised: its GPU dumps are waited for, a stall is
    examined, and the report names what failed. CRASHLAB_API_KEY is sent as the API key.

    \b
    Examples:
      crashlab soak --for 50m -- vllm serve MODEL
      crashlab soak --shape decode-heavy --repeat 5 -- \\
        vllm serve MODEL -cc.cudagraph_mode=FULL_DECODE_ONLY
      crashlab soak --clients 32 --input-tokens 2k:3k --output-tokens 256 \\
        --ignore-eos -- vllm serve MODEL
      crashlab soak --replay crashlab-runs/20261130T012345Z-vllm -- \\
        vllm serve MODEL --enforce-eager
      crashlab soak --url http://gpu-host:8000 --for 10m
      crashlab soak --load-cmd \\
        'vllm bench serve --base-url {url} --model {model}' \\
        -- vllm serve MODEL

    Exit code: 0 nothing found, 10 GPU fault, 11 fault without a usable dump, 12 stall, 13 garbage,
    14 never ready, 15 inconclusive, 16 host-side death, 130 interrupted.
    """
    from crashlab.cli.soakrun import SoakRun, Wanted, need_packages

    if not command and options["url"] is None:
        raise click.UsageError("What should be loaded? 'crashlab soak -- vllm serve MODEL', or --url URL.")
    need_packages()
    settings = settings_of(command, options)
    if settings.replay is not None:
        from crashlab.soak.replay import load_replay

        load_replay(settings.replay, settings.source)  # hours of a start are not worth a wrong name
    from crashlab.rundir.writer import RunWriter

    writer = RunWriter.create(options["out"], command or ("soak",))
    if not command:
        _describe_remote(writer, settings, options)
    run = SoakRun(
        Wanted(
            settings,
            writer,
            config_of(writer, command, options) if command else None,
            options["repeat"] if command else 1,
            options["fast"],
            options["json_lines"],
            options["quiet"],
            questions=options["questions"] or 0,
        )
    )
    if not options["quiet"] and not options["json_lines"]:
        say(f"evidence goes to {writer.path}")
    warn_of_variable()  # before the load: after the crash it would be too late to mend them
    code = run.go()
    show(run, as_json=options["as_json"], quiet=options["quiet"], verbose=options["verbose"])
    return code


def settings_of(command: tuple[str, ...], options: dict[str, Any]) -> SoakSettings:
    """The load that the options describe. Raises UsageError or UnreadableInput."""
    import json

    from crashlab.soak.budget import Budget, parse_count, parse_duration, parse_range
    from crashlab.soak.progress import Limits
    from crashlab.soak.prompts import Source, load_source
    from crashlab.soak.serverurl import plain_url, url_of
    from crashlab.soak.settings import SoakSettings
    from crashlab.soak.shapes import Sizes

    try:
        load_cmd = tuple(shlex.split(options["load_cmd"])) if options["load_cmd"] else ()
    except ValueError as error:
        raise UsageError(f"--load-cmd cannot be read: {error}.", hint="Quote it for the shell.") from error
    url = plain_url(options["url"] if options["url"] is not None else url_of(command))
    limited = not options["until_fault"]
    return SoakSettings(
        url,
        options["model"],
        os.environ.get("CRASHLAB_API_KEY"),
        options["shape"],
        options["clients"],
        options["seed"],
        Sizes(
            parse_range(options["input_tokens"]),
            parse_range(options["output_tokens"]),
            None,
            options["temperature"],
            options["ignore_eos"],
        ),
        load_source(options["prompts"]) if options["prompts"] else Source(),
        options["replay"],
        load_cmd,
        Budget(
            parse_duration(options["budget_for"]) if limited and options["budget_for"] else None,
            parse_count(options["steps"]) if limited and options["steps"] else None,
            parse_count(options["requests"]) if limited and options["requests"] else None,
        ),
        limits=Limits(parse_duration(options["stall_after"]), parse_duration(options["prefill_limit"])),
        canary_every=options["canary_every"] or None,
        ready_within=parse_duration(options["ready_within"]),
        on_stall=options["on_stall"],
        extra=json.loads(options["extra"]) if options["extra"] else None,
    )


def config_of(writer: RunWriter, command: tuple[str, ...], options: dict[str, Any]) -> RunConfig:
    """How the server is supervised; writes ``run.json``."""
    from crashlab.capture.config import RunConfig
    from crashlab.capture.plan import plan_environment
    from crashlab.capture.session import describe

    hang_dumps = not options["no_hang_dumps"]
    plan = plan_environment(os.environ, writer.path, dump=options["dump"], hang_dumps=hang_dumps)
    # Its output is recorded; on the terminal it would bury the progress.
    config = RunConfig(
        command,
        dict(os.environ),
        plan,
        os.getcwd(),
        hang_dumps=hang_dumps,
        max_dumps_bytes=options["max_dumps_bytes"],
        sinks=(-1, -1),
    )
    describe(writer, config, {k: v for k, v in options.items() if v is not None})
    return config


def _describe_remote(writer: RunWriter, settings: SoakSettings, options: dict[str, Any]) -> None:
    """Nothing is supervised; ``run.json`` says what was loaded."""
    from crashlab.rundir import redact

    shown = {name: redact.text(str(value)) for name, value in options.items() if value is not None}
    writer.start({"argv": [], "options": shown, "url": redact.text(settings.url)})


def show(run: Any, *, as_json: bool, quiet: bool, verbose: bool) -> None:
    """The report on stdout."""
    report = run.verdict
    if report is None:
        return
    if as_json:
        from crashlab.report import jsonio

        result(jsonio.dumps(report))
    elif quiet:
        from crashlab.report.safe import one_line

        result(f"{one_line(report.verdict.headline)}\n")
    else:
        from crashlab.report import text

        result(text.render(report, verbose=verbose, width=page_width()))
