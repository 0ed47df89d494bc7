"""``crashlab analyze``: post-mortem of existing evidence."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from crashlab.cli import exitcode
from crashlab.cli.given import Given, seconds
from crashlab.cli.unusable import warn_of_variable
from crashlab.cli.width import page_width
from crashlab.errors import MissingTool, UsageError
from crashlab.facts import Report
from crashlab.report.options import SASS_BY, AnalyzeOptions
from crashlab.report.safe import one_line
from crashlab.rundir.layout import is_run

if TYPE_CHECKING:
    from crashlab.report.groups import Reader


@click.command()
@click.argument("cores", nargs=-1, metavar="CORE...|RUNDIR|FOLDER", type=click.Path(readable=False))
@click.option("--json", "as_json", is_flag=True, help="Write the report as JSON (schema crashlab.report/1).")
@click.option("--fast", is_flag=True, help="Start no external process, and do not rebuild the address.")
@click.option(
    "--exit-code", "use_exit_code", is_flag=True, help="Exit with 10 to 16 when something was found."
)
@click.option(
    "--log",
    "logs",
    multiple=True,
    type=click.Path(readable=False),
    metavar="FILE",
    help="Output of the crashed program: driver lines, server log, traceback. Repeatable.",
)
@click.option(
    "--dmesg",
    multiple=True,
    type=click.Path(readable=False),
    metavar="FILE",
    help="Kernel log with NVRM Xid lines. Repeatable.",
)
@click.option(
    "--env",
    "environment",
    multiple=True,
    metavar="FILE|KEY=VALUE",
    help="Facts about the crashed process, such as cudnn=9.19.0.56. Repeatable.",
)
@click.option(
    "--transcript",
    type=click.Path(allow_dash=True, readable=False),
    metavar="FILE|-",
    help="A cuda-gdb transcript instead of a dump; '-' reads standard input.",
)
@click.option(
    "--debugger",
    default="auto",
    show_default=True,
    metavar="auto|always|never|PATH",
    help="Whether to ask cuda-gdb as a second witness; auto: when it is found.",
)
@click.option(
    "--debugger-timeout",
    default=60.0,
    show_default=True,
    type=float,
    callback=seconds,
    metavar="SECONDS",
    help="Time limit for cuda-gdb.",
)
@click.option("--nvdisasm", type=click.Path(readable=False), metavar="PATH", help="The nvdisasm to use.")
@click.option(
    "--sass-by",
    type=click.Choice(SASS_BY),
    default="auto",
    show_default=True,
    help="Who reads the instructions; auto: crashlab itself, nvdisasm for what it does not know.",
)
@click.option(
    "--on",
    "place",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Where a folder of dumps is read: here, in several processes, or on a Ray cluster.",
)
@click.option("--ray-address", default="auto", show_default=True, metavar="ADDR", help="The Ray cluster.")
@click.option("--show-commands", is_flag=True, help="Also print the commands that check each claim by hand.")
@click.option("-v", "--verbose", is_flag=True, help="Whole SASS window, every fault, all readers and notes.")
@click.option("-q", "--quiet", is_flag=True, help="Only the headline.")
def analyze(
    cores: tuple[str, ...],
    as_json: bool,
    fast: bool,
    use_exit_code: bool,
    logs: tuple[str, ...],
    dmesg: tuple[str, ...],
    environment: tuple[str, ...],
    transcript: str | None,
    debugger: str,
    debugger_timeout: float,
    nvdisasm: str | None,
    sass_by: str,
    place: str,
    ray_address: str,
    show_commands: bool,
    verbose: bool,
    quiet: bool,
) -> int:
    """Say what really failed, from GPU core dumps (plain, gzip or xz).

    Several dumps are read as one crash: the first real exception is the candidate origin. A run
    directory is analysed with all that it recorded; any other folder is read as many crashes, grouped by
    what failed. Without a readable dump, logs or a cuda-gdb transcript give a verdict of lower confidence.

    \b
    Examples:
      crashlab analyze core.nvcudmp
      crashlab analyze core.nvcudmp --log server.log --dmesg dmesg.txt
      crashlab analyze rank0.nvcudmp rank1.nvcudmp
      crashlab analyze /var/crash/cores
      crashlab analyze core.nvcudmp --env cudnn=9.19.0.56 --env torch=2.11.0+cu130
      crashlab analyze --transcript pasted.txt
      crashlab analyze --json --fast core.nvcudmp > report.json

    Exit code: 0 done, 2 usage, 3 nothing could be read. With --exit-code: 10 fault, 11 fault known from
    text only, 12 hang, 13 garbage, 15 inconclusive, 16 host-side death. Of several dumps those that can
    be read decide; the report names the others, and 'no fault' beside an unreadable dump is 15.
    """
    from crashlab.report import build

    if not cores and transcript is None and not logs and not dmesg:
        raise click.UsageError(
            "Give at least one dump, --log, --dmesg or --transcript: 'crashlab analyze core.nvcudmp'."
        )
    _check(Given(click.get_current_context()), cores, transcript, debugger)
    _check_nvdisasm(nvdisasm)
    if cores and debugger not in ("auto", "always", "never"):
        from crashlab.debugger.candidates import require

        require(debugger)
    facts_given = None
    if environment:
        from crashlab.signatures.environment import parse_options

        facts_given = parse_options(environment)
    options = AnalyzeOptions(
        fast=fast,
        debugger=debugger,
        debugger_timeout=debugger_timeout,
        nvdisasm=nvdisasm,
        sass_by=sass_by,
        logs=logs,
        dmesg=dmesg,
        environment=facts_given,
    )
    warn_of_variable()
    if len(cores) == 1 and is_run(cores[0]):
        from crashlab.report.fromrundir import analyze_rundir

        report = analyze_rundir(cores[0], options)
    elif len(cores) == 1 and os.path.isdir(cores[0]):
        _refuse_result(cores[0])
        reader = _reader(place, ray_address)
        return _folder(cores[0], options, reader, as_json=as_json, use_exit_code=use_exit_code, quiet=quiet)
    elif transcript is not None:
        from crashlab.report.fromtext import analyze_transcript

        report = analyze_transcript(_read(transcript), transcript, options)
    elif cores:
        report = build.analyze(cores, options)
    else:
        from crashlab.report.fromtext import analyze_logs

        report = analyze_logs(options)
    if show_commands:
        from crashlab.report.byhand import with_commands

        report = with_commands(report, cores)
    _print(report, as_json=as_json, verbose=verbose, quiet=quiet)
    if quiet:
        for case in report.cases:
            if case.role == "unreadable":
                click.echo(f"crashlab: {one_line(case.input)}: {one_line(case.headline)}", err=True)
    return exitcode.of_analysis(report, told=use_exit_code)


def _check(given: Given, cores: tuple[str, ...], transcript: str | None, debugger: str) -> None:
    """UsageError for options that contradict each other; a line on stderr for those that change nothing."""
    if cores and transcript is not None:
        raise UsageError("--transcript is read instead of a dump.", hint="Give one of the two.")
    names = given.names()
    if "fast" in names:
        why = "starts an external program, and --fast starts none."
        given.refuse(
            ("debugger",) if debugger not in ("auto", "never") else (), why, "Leave one of them out."
        )
        given.refuse(("nvdisasm",), why, "Leave one of them out.")
        if given.value("sass_by") in ("nvdisasm", "both"):
            given.refuse(("sass_by",), why, "Leave --fast out, or give --sass-by native.")
    if given.value("sass_by") == "native":
        given.refuse(("nvdisasm",), "names a program that --sass-by native never asks.", "Leave it out.")
    if "quiet" in names:
        given.refuse(("as_json", "verbose", "show_commands"), "and -q contradict each other.", "Choose one.")
    if "as_json" in names:
        given.idle(("verbose",), "JSON always holds everything.")
    if not cores:
        given.idle(("debugger", "debugger_timeout", "nvdisasm", "sass_by", "fast"), "no dump is read.")
    elif "fast" in names or debugger == "never":
        given.idle(("debugger_timeout",), "cuda-gdb is not asked.")
    if len(cores) != 1 or not os.path.isdir(cores[0]) or is_run(cores[0]):
        given.refuse(("place", "ray_address"), "is for a folder of many dumps.", "Give the folder.")
    else:
        given.refuse(
            ("show_commands",), "is about one crash, and this folder is read as many.", "Give one dump."
        )
        given.idle(("verbose",), "of a folder only the groups are shown.")


def _refuse_result(folder: str) -> None:
    """UsageError for the folder of a sweep or a quality run, which hold results and not dumps."""
    from crashlab.cli.otherresults import other_result

    if other_result(folder) is not None:
        raise UsageError(
            f"{folder} holds the result of a sweep or a quality run, not dumps.",
            hint=f"crashlab report {folder} shows it; the runs in it can be analysed one by one.",
        )


def _check_nvdisasm(path: str | None) -> None:
    """MissingTool for one that was named and is not there."""
    if path is None:
        return
    import shutil

    if shutil.which(path) is None:
        raise MissingTool(
            f"--nvdisasm: {one_line(path)} is no program that can be run.",
            hint="Check the path, or leave it out.",
        )


def _reader(place: str, address: str) -> Reader:
    """What reads the dumps of a folder."""
    from functools import partial

    from crashlab.report import groupwork

    if place == groupwork.RAY:
        return partial(groupwork.read_on_ray, address=address)
    return groupwork.read_here


def _folder(
    folder: str,
    options: AnalyzeOptions,
    reader: Reader,
    *,
    as_json: bool,
    use_exit_code: bool,
    quiet: bool,
) -> int:
    """A folder of dumps: every one by itself, grouped by key."""
    from crashlab.report import groups, groupstext

    found = groups.analyze_folder(folder, options, reader)
    if as_json:
        from crashlab.report.jsonio import to_json
        from crashlab.report.jsontext import written

        sys.stdout.write(written(to_json(found)) + "\n")
    else:
        click.echo(
            groupstext.summary(found) if quiet else groupstext.render(found, width=page_width()), nl=quiet
        )
    for text in found.unreadable if quiet else ():
        click.echo(f"crashlab: {one_line(text)}", err=True)
    code = exitcode.of_folder([entry.kind for entry in found.groups], len(found.unreadable))
    return code if use_exit_code or code == exitcode.UNREADABLE else 0


def _read(transcript: str) -> bytes:
    """A transcript's bytes, at most 16 MiB of them."""
    from crashlab.inputfile import open_regular

    limit = 16 << 20
    if transcript == "-":
        return sys.stdin.buffer.read(limit)
    with open_regular(transcript, "transcript") as file:
        return file.read(limit)


def _print(report: Report, *, as_json: bool, verbose: bool, quiet: bool) -> None:
    if as_json:
        from crashlab.report import jsonio

        sys.stdout.write(jsonio.dumps(report))
    elif quiet:
        click.echo(one_line(report.verdict.headline))
    else:
        from crashlab.report import text

        click.echo(text.render(report, verbose=verbose, width=page_width()), nl=False)
