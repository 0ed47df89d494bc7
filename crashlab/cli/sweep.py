"""``crashlab sweep``: which lever decides?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from crashlab.cli.given import Given
from crashlab.cli.sweepoptions import check_options
from crashlab.cli.sweepview import FORMATS, form_of

if TYPE_CHECKING:
    from crashlab.sweep.plan import Plan

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
    "--format",
    "shape",
    type=click.Choice(FORMATS),
    help="Of the result; html with -o FILE.html and so on, else text.",
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
      crashlab sweep --report-only -o moe.html sweeps/moe
      crashlab sweep --on ray plan.toml
      crashlab sweep --slurm plan.toml > sweep.sbatch

    Exit code: 0 the plan ran to its end, 2 broken plan, 3 prerequisite missing, 15 inconclusive (the
    baseline did not fail often enough to compare with), 130 interrupted.
    """
    context = click.get_current_context()
    command = context.meta[_COMMAND]
    check_options(Given(context), plans or command, options)
    if options["list_levers"]:
        from crashlab.cli.sweepview import print_levers

        print_levers(as_json=options["as_json"] or options["shape"] == "json")
        return 0
    form_of(options)  # a name that nothing here writes is refused before anything is read
    from crashlab.cli.sweepplan import planned, the_one

    source = the_one(plans)
    plan, folder = planned(source, command, options)
    if options["slurm"]:
        from crashlab.sweep.slurm import script

        click.echo(script(plan, source, folder), nl=False)
        return 0
    if options["report_only"]:
        return _report_only(plan, folder, options)
    return _go(plan, folder, options)


def _report_only(plan: Plan, folder: str, options: dict[str, Any]) -> int:
    from crashlab.cli.sweepview import code_of, show
    from crashlab.sweep.runner import SweepFolder, result_from

    result = result_from(SweepFolder(folder), plan)
    show(result, plan, None, options)
    return code_of(plan, result)


def _go(plan: Plan, folder: str, options: dict[str, Any]) -> int:
    """What needs the server: its arms and their cost, one run of an array, or the whole sweep."""
    from crashlab.cli import sweeprun
    from crashlab.cli.sweepplan import probed

    server = probed(plan)
    if options["dry_run"]:
        from crashlab.cli.sweepview import print_dry_run

        print_dry_run(plan, server)
        return 0
    if options["task"] is not None:
        return sweeprun.run_one(plan, server, folder, options)
    return sweeprun.run_all(plan, server, folder, options)
