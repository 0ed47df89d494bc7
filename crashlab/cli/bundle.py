"""``crashlab bundle``: the redacted attachment of an issue, and a look into one before it leaves."""

from __future__ import annotations

import os
from pathlib import Path

import click

from crashlab.cli.given import Given
from crashlab.errors import UnreadableInput, UsageError
from crashlab.postmortem.words import counted
from crashlab.report.safe import one_line


@click.command()
@click.argument("source", required=False, metavar="RUNDIR|REPORT.JSON|DUMP", type=click.Path(readable=False))
@click.option(
    "-o",
    "--output",
    type=click.Path(readable=False),
    metavar="FILE.zip",
    help="The bundle, by default SOURCE.zip here; further parts get .part2.zip and so on.",
)
@click.option(
    "--check",
    type=click.Path(readable=False),
    metavar="FILE.zip",
    help="Show what a bundle holds and what was taken out.",
)
@click.option(
    "--include-dump", is_flag=True, help="Take the GPU core dumps in, without the contents of GPU memory."
)
@click.option(
    "--include-memory",
    is_flag=True,
    help="With --include-dump: GPU memory too. It may hold prompts and weights.",
)
def bundle(
    source: str | None, output: str | None, check: str | None, include_dump: bool, include_memory: bool
) -> int:
    """Write one zip (or several below 25 MB) for an issue: report in all forms, logs, the faulting cubin.

    Secrets, people, machines and prompts are taken out everywhere. Look at it with --check before you
    attach it; nothing is ever sent.

    \b
    Examples:
      crashlab bundle run1/                          writes run1.zip
      crashlab bundle run1/ -o crash.zip --include-dump
      crashlab bundle --check crash.zip
    """
    if check is not None:
        if source is not None:
            raise UsageError("--check looks into one bundle.", hint="'crashlab bundle --check FILE.zip'.")
        Given(click.get_current_context()).refuse(
            ("output", "include_dump", "include_memory"), "is for writing a bundle, and --check only looks.",
            "Leave one of them out.",
        )  # fmt: skip
        return _check(Path(check))
    if source is None:
        raise UsageError("What should be bundled?", hint="'crashlab bundle RUNDIR -o crash.zip'.")
    if include_memory and not include_dump:
        raise UsageError("--include-memory needs --include-dump.", hint="Give both, or neither.")
    return _write(source, Path(output or _default(source)), include_dump, include_memory)


def _default(source: str) -> str:
    """``run1.zip`` for ``case/run1``, ``core.zip`` for ``core.nvcudmp``, in the current folder."""
    name = os.path.basename(os.path.abspath(source))
    if not os.path.isdir(source):
        return f"{name.partition('.')[0] or 'crash'}.zip"
    if Path(os.path.realpath(os.curdir)).is_relative_to(os.path.realpath(source)):
        raise UsageError(
            "The bundle would lie in the very folder that is bundled.", hint="Name another place with -o."
        )
    return f"{name}.zip"


def _write(source: str, target: Path, dump: bool, memory: bool) -> int:
    from crashlab.cli.evidence import load, local_names
    from crashlab.report import bundle as writer
    from crashlab.report.groups import begins_like_a_dump

    evidence = load(source, "never")
    if evidence.report.verdict.kind == "unreadable":
        raise UnreadableInput(
            f"There is nothing to bundle: {evidence.report.verdict.headline}",
            hint="Give a run directory, a report.json or a readable dump.",
        )
    given = Path(source) if evidence.folder is None and begins_like_a_dump(source) else None
    if dump and evidence.folder is None and given is None:
        raise UsageError(
            "--include-dump takes dumps from a run directory, and this is a report alone.",
            hint="Give the dump itself, or put it into RUNDIR/cores/ beside the report.json.",
        )
    users, hosts = local_names()
    options = writer.Options(dump, memory, users, hosts)
    written = writer.write(evidence.report, evidence.folder, target, options, evidence.timeline, given)
    for part in written.parts:
        click.echo(f"{one_line(str(part))}  {part.stat().st_size:,} bytes")
    click.echo(f"written to {one_line(str(target.resolve().parent))}", err=True)
    click.echo(f"{counted(len(written.names), 'file')}; taken out: {_counts(written.counts)}", err=True)
    for item in written.left:
        click.echo(f"not in it: {one_line(item.name)}: {one_line(item.why)}", err=True)
    click.echo(f"Look at it before you attach it: crashlab bundle --check {one_line(str(target))}", err=True)
    return 0


def _check(path: Path) -> int:
    """List a bundle; 3 when it is damaged or something in it still looks private."""
    from crashlab.report import bundlecheck

    found = bundlecheck.check(path)
    for item in found.items:
        state = {True: "", False: "  DAMAGED: not the file that was written", None: ""}[item.whole]
        taken = f"  taken out: {_counts(item.taken_out)}" if item.taken_out else ""
        click.echo(f"{item.size:>12,}  {one_line(item.name)}{taken}{state}")
        if item.suspicious:
            click.echo(f"{'':14}STILL LOOKS PRIVATE: {_counts(item.suspicious)}")
    for name in found.missing:
        click.echo(f"{'MISSING':>12}  {one_line(name)}")
    for name, why in found.left_out:
        click.echo(f"{'stays here':>12}  {one_line(name)}: {one_line(why)}")
    return 0 if found.good else 3


def _counts(counts: dict[str, int]) -> str:
    return one_line(", ".join(f"{number} {name}" for name, number in sorted(counts.items())) or "nothing")
