"""What ``crashlab sweep`` shows: its result in any form, a dry run, the catalogue of levers."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from crashlab.cli import exitcode
from crashlab.cli.tofile import form_for, write_file
from crashlab.cli.voice import tell
from crashlab.cli.width import page_width

if TYPE_CHECKING:
    from crashlab.report.text import Paragraph
    from crashlab.sweep.facts import SweepResult
    from crashlab.sweep.plan import Plan
    from crashlab.sweep.probe import Server

_NARROW = 60
FORMATS = ("text", "md", "html", "json", "junit")


def form_of(options: dict[str, Any]) -> str:
    """The result's format: as asked for, else as the file's name says. Raises UsageError."""
    return form_for("json" if options["as_json"] else options["shape"], options["output"], FORMATS)


def show(result: SweepResult, plan: Plan, folder: str | None, options: dict[str, Any]) -> None:
    """The result on stdout or into a file; into the sweep's folder as well."""
    from crashlab.report.sweep import render
    from crashlab.sweep.verdict import judged

    result = judged(result, level=plan.budget.level)
    if folder is not None:
        for name, shape in (("report.json", "json"), ("report.txt", "text"), ("report.html", "html")):
            write_file(os.path.join(folder, name), render(result, shape))
    shape = form_of(options)
    if options["output"]:
        write_file(options["output"], render(result, shape))
        say(f"written to {os.path.abspath(options['output'])}", quiet=options["quiet"])
    else:
        sys.stdout.write(render(result, shape, width=page_width()))


def code_of(plan: Plan, result: SweepResult) -> int:
    """The exit code: 0, or inconclusive where the baseline did not fail often enough."""
    from crashlab.sweep.schedule import standings

    baseline = standings(plan, result.runs)[0]
    return 0 if baseline.tally.events >= plan.budget.baseline_faults else exitcode.INCONCLUSIVE


def print_dry_run(plan: Plan, server: Server) -> None:
    """Arms, their commands and what they cost, on stdout."""
    from crashlab.sweep.estimate import dry_run

    for line in _sentences(dry_run(plan, server)):
        click.echo(line)


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


def print_levers(*, as_json: bool) -> None:
    """The catalogue of levers on stdout."""
    from crashlab.sweep.catalogue import as_rows, bundled

    rows = as_rows(bundled().values())
    if as_json:
        from crashlab.report.jsontext import written

        click.echo(written(rows))
        return
    from crashlab.report.text import page

    width = page_width()
    click.echo(page(_levers(rows, width), width), nl=False)


def _levers(rows: list[dict[str, Any]], width: int) -> Iterator[Paragraph]:
    """The id, and beside it (on a narrow screen below it) what is known of the lever."""
    from crashlab.report.text import Paragraph

    lead = " " * (25 if width >= _NARROW else 2)
    for row in rows:
        told = [
            row["title"],
            f"set by {' or '.join(row['set'])}; values: {', '.join(row['values']) or 'any'}",
            *(
                [f"tries {', '.join(row['suggest'])}; shown by {', '.join(row['shown_by'])}"]
                if row["suggest"]
                else []
            ),
            *(f"but: {sentence}" for sentence in row["confounds"]),
        ]
        if width >= _NARROW:
            yield Paragraph(told[0], f"{row['id']:24} ", lead)
        else:
            yield Paragraph(row["id"])
            yield Paragraph(told[0], lead, lead)
        yield from (Paragraph(text, lead, lead) for text in told[1:])


def say(text: str, *, quiet: bool) -> None:
    """A line on stderr, unless it is to be quiet."""
    if not quiet:
        tell(text)
