"""``crashlab sweep``: which lever decides?"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from crashlab.cli import exitcode
from crashlab.cli.given import Given
from crashlab.cli.tofile import write_file
from crashlab.cli.voice import tell
from crashlab.cli.width import page_width
from crashlab.errors import UsageError

if TYPE_CHECKING:
    from crashlab.sweep.backend import Backend
    from crashlab.sweep.facts import SweepResult
    from crashlab.sweep.plan import Plan
    from crashlab.sweep.probe import Server

_FORMATS = ("text", "md", "html", "json", "junit")
_INTERRUPTED = 130
_LIMIT = 4 << 20
_COMMAND = "crashlab.sweep.command"


class _PlanAndCommand(click.Command):
    """Options stand before or after the plan; from the first '--' on everything is the server's command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[_COMMAND] = tuple(args[at + 1 :])
        try:
            return super().parse_args(ctx, args[:at])
        except click.NoSuchOption as error:
            if at == len(args):
                hint = f"No such option {error.option_name!r}. The server's command comes after '--'."
                raise click.NoSuchOption(error.option_name, hint, error.possibilities, ctx) from None
            raise


@click.command(cls=_PlanAndCommand)
@click.argument("plans", nargs=-1, metavar="PLAN|DIR [-- CMD...]")
@click.option("--out", type=click.Path(), metavar="DIR", help="The sweep's folder. The same one goes on.")
@click.option(
    "--prepare", multiple=True, metavar="CMD", help="Fills an arm's own {overlay} with {value}. Repeatable."
)
@click.option("--dry-run", is_flag=True, help="Check plan and server, show arms and cost, run nothing.")
@click.option(
    "--on", "place", type=click.Choice(["local", "ray"]), default="local", show_default=True, help="Where."
)
@click.option("--ray-address", default="auto", show_default=True, metavar="ADDR", help="The Ray cluster.")
@click.option("--slurm", is_flag=True, help="Print an sbatch array script of the plan, run nothing.")
@click.option("--task", type=click.IntRange(1), metavar="N", help="Make run N of the array only (Slurm).")
@click.option("--report-only", is_flag=True, help="Judge what a sweep's folder holds so far, run nothing.")
@click.option("--list-levers", is_flag=True, help="The catalogue of levers.")
@click.option(
    "--format", "shape", type=click.Choice(_FORMATS), default="text", show_default=True, help="Of the result."
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("-o", "--output", type=click.Path(), metavar="FILE", help="Write the result there.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing while it runs.")
def sweep(plans: tuple[str, ...], **options: Any) -> int:
    """Turn one lever at a time and say, with exact statistics, which of them decides.

    Every arm is a soak of its own, with its own run directory and the same requests. A lever that did
    not verifiably take is reported as not_applied. The folder holds all state: the same command, or
    'crashlab sweep DIR', goes on after any interruption, kill -9 included. PLAN may also be a
    parameter file (JSON) of 'vllm bench sweep'.

    \b
    Examples:
      crashlab sweep plan.toml --dry-run
      crashlab sweep --out sweeps/moe plan.toml -- vllm serve MODEL --port 8000
      crashlab sweep sweeps/moe                          go on, or show the result
      crashlab sweep --report-only --format html -o moe.html sweeps/moe
      crashlab sweep --on ray plan.toml
      crashlab sweep --slurm plan.toml > sweep.sbatch

    Exit code: 0 the plan ran to its end, 2 broken plan, 3 prerequisite missing, 15 inconclusive (the
    baseline did not fail often enough to compare with), 130 interrupted.
    """
    context = click.get_current_context()
    _check_options(Given(context), plans or context.meta[_COMMAND], options)
    if options["list_levers"]:
        _print_levers(as_json=options["as_json"] or options["shape"] == "json")
        return 0
    source = _only(plans)
    plan, folder_path = _plan(source, context.meta[_COMMAND], options)
    if options["slurm"]:
        from crashlab.sweep.slurm import script

        click.echo(script(plan, source, folder_path), nl=False)
        return 0
    if options["report_only"]:
        return _report_only(plan, folder_path, options)
    server = _probe(plan)
    if options["dry_run"]:
        from crashlab.sweep.estimate import dry_run

        for line in _sentences(dry_run(plan, server)):
            click.echo(line)
        return 0
    if options["task"] is not None:
        from crashlab.sweep.arraytask import run_task

        def say(text: str) -> None:
            _say(text, quiet=options["quiet"])

        done = run_task(plan, folder_path, options["task"], server, os.getcwd(), say)
        return 0 if done is not None else _INTERRUPTED
    return _run(plan, server, folder_path, options)


_MODES = ("list_levers", "dry_run", "slurm", "report_only", "task")
_RESULT = ("shape", "as_json", "output")
_IDLE = {
    "dry_run": (_RESULT, "a dry run has no result."),
    "slurm": ((*_RESULT, "quiet"), "a script is printed, which has no result yet."),
    "task": (_RESULT, "one run of an array has no result of its own; --report-only judges them together."),
    "report_only": (("quiet", "place", "ray_address"), "nothing is run."),
}
"""Options that change nothing in a mode, and why."""


def _check_options(given: Given, words: tuple[str, ...], options: dict[str, Any]) -> None:
    """Raises UsageError for options that contradict each other; says which change nothing."""
    modes = [name for name in _MODES if options[name]]
    given.refuse(modes[1:], "is another thing to do than what else was asked for.", "Choose one of them.")
    if options["as_json"]:
        given.refuse(("shape",), "and --json contradict each other.", "Leave one of them out.")
    if options["list_levers"]:
        if words:
            raise UsageError(
                f"--list-levers lists the whole catalogue; {words[0]!r} would not be read.",
                hint="Leave one of the two out; 'crashlab sweep PLAN --dry-run' shows a plan's levers.",
            )
        if options["shape"] not in ("text", "json"):
            given.refuse(("shape",), "is for results; the catalogue is text or JSON.", "Leave it out.")
        given.idle(sorted(given.names() - {"list_levers", "as_json", "shape"}), "the catalogue is listed.")
        return
    if options["place"] == "ray" and modes and modes[0] in ("slurm", "task"):
        given.refuse(("place",), "ray and Slurm are two places to run.", "Choose one of them.")
    if modes:
        given.idle(*_IDLE[modes[0]])
    if options["place"] != "ray" and not options["report_only"]:
        given.idle(("ray_address",), "the sweep does not run on Ray.")


def _sentences(lines: Iterator[str]) -> Iterator[str]:
    """Long lines broken to the screen, but for commands, which are there to be copied."""
    import textwrap

    before = ""
    for line in lines:
        if line.startswith("baseline") or before.startswith("arm "):
            yield line
        else:
            yield textwrap.fill(line, page_width(), subsequent_indent=" " * 10, break_on_hyphens=False)
        before = line


def _only(plans: tuple[str, ...]) -> str:
    if not plans:
        raise click.UsageError("Which plan? 'crashlab sweep PLAN', or --list-levers for what can be turned.")
    if len(plans) > 1:
        raise click.UsageError(f"{plans[1]!r} comes after the plan: the server's command comes after '--'.")
    return plans[0]


def _plan(source: str, command: tuple[str, ...], options: dict[str, Any]) -> tuple[Plan, str]:
    """(the plan, the sweep's folder)."""
    from crashlab.sweep.plan import read_plan
    from crashlab.sweep.runner import is_sweep, plan_of

    prepare = []
    for text in options["prepare"]:
        try:
            prepare.append(shlex.split(text))
        except ValueError as error:
            raise UsageError(f"--prepare cannot be read: {error}.", hint="Quote it for the shell.") from error
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


def _probe(plan: Plan) -> Server:
    """What the server says of itself, unless the plan says it or forbids to ask."""
    from crashlab.sweep.job import ways_of
    from crashlab.sweep.probe import Server, ask
    from crashlab.sweep.setting import environment_of

    server = Server(None, plan.server_version)
    # A command inside an overlay exists only once that is filled.
    if plan.server_help and "{overlay}" not in plan.command[0]:
        found = ask(plan.command, environment_of(os.environ, plan.environment))
        server = found._replace(version=plan.server_version or found.version)
    ways_of(plan, server)
    return server


def _run(plan: Plan, server: Server, path: str, options: dict[str, Any]) -> int:
    from crashlab.sweep.job import check_parallel
    from crashlab.sweep.runner import Sweep, SweepFolder

    if options["output"]:
        _check_target(options["output"])
    backend = _backend(plan, options)
    check_parallel(plan, backend.slots)
    folder = SweepFolder.open(path, plan, os.getcwd())
    try:
        run = Sweep(plan, folder, backend, server, lambda text: _say(text, quiet=options["quiet"]))
        _say(f"the sweep's folder is {folder.path}", quiet=options["quiet"])
        result = _go(run)
    finally:
        folder.close()
    _show(result, plan, folder.path, options)
    if run.interrupts:
        _say(f"interrupted; 'crashlab sweep {path}' goes on", quiet=options["quiet"])
        return _INTERRUPTED
    return _code(plan, result)


def _check_target(path: str) -> None:
    """Raises UsageError for a file that cannot be written, before hours of runs and not after them."""
    place = path if os.path.exists(path) else os.path.dirname(path) or "."
    if os.path.isdir(path) or not os.access(place, os.W_OK):
        raise UsageError(f"Cannot write {path}.", hint="Name a file in a folder that exists.")


def _go(run: Any) -> SweepResult:
    """Ctrl-C once: no more runs, and what runs takes its evidence; twice: it ends now."""
    import signal

    old = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        old[number] = signal.signal(number, lambda *_: run.interrupt())
    try:
        result: SweepResult = run.go()
        return result
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _backend(plan: Plan, options: dict[str, Any]) -> Backend:
    if options["place"] == "ray":
        from crashlab.sweep.raycluster import RayCluster

        return RayCluster(plan.remote, options["ray_address"])
    from crashlab.sweep.backend import Local

    return Local(plan.remote.parallel or 1)


def _report_only(plan: Plan, path: str, options: dict[str, Any]) -> int:
    from crashlab.sweep.runner import SweepFolder, result_from

    result = result_from(SweepFolder(path), plan)
    _show(result, plan, None, options)
    return _code(plan, result)


def _show(result: SweepResult, plan: Plan, folder: str | None, options: dict[str, Any]) -> None:
    """The result on stdout or into a file; into the sweep's folder as well."""
    from crashlab.report.sweep import render
    from crashlab.sweep.verdict import judged

    result = judged(result, level=plan.budget.level)
    if folder is not None:
        for name, shape in (("report.json", "json"), ("report.txt", "text"), ("report.html", "html")):
            write_file(os.path.join(folder, name), render(result, shape))
    shape = "json" if options["as_json"] else options["shape"]
    if options["output"]:
        write_file(options["output"], render(result, shape))
    else:
        sys.stdout.write(render(result, shape, width=page_width()))


def _code(plan: Plan, result: SweepResult) -> int:
    from crashlab.sweep.schedule import standings

    baseline = standings(plan, result.runs)[0]
    return 0 if baseline.tally.events >= plan.budget.baseline_faults else exitcode.INCONCLUSIVE


def _print_levers(*, as_json: bool) -> None:
    from crashlab.sweep.catalogue import as_rows, bundled

    rows = as_rows(bundled().values())
    if as_json:
        from crashlab.report.jsontext import written

        click.echo(written(rows))
        return
    for row in rows:
        values = ", ".join(row["values"]) or "any"
        click.echo(f"{row['id']:24} {row['title']}")
        click.echo(f"{'':24} set by {' or '.join(row['set'])}; values: {values}")
        if row["suggest"]:
            click.echo(f"{'':24} tries {', '.join(row['suggest'])}; shown by {', '.join(row['shown_by'])}")
        for sentence in row["confounds"]:
            click.echo(f"{'':24} but: {sentence}")


def _say(text: str, *, quiet: bool) -> None:
    if not quiet:
        tell(text)
