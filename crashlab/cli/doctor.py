"""``crashlab doctor``: is this machine ready to catch a fault?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from crashlab.cli.width import page_width
from crashlab.report.safe import one_line

if TYPE_CHECKING:
    from crashlab.capture.doctor.check import Check
    from crashlab.facts import Report
    from crashlab.report.text import Paragraph

SCHEMA = "crashlab.doctor/1"
_MARKS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL", "unknown": "?   "}
_NOT_READY = 3
_WIDTH = 100
"""Columns where there is no terminal."""
_NARROW = 60


@click.command()
@click.option("--json", "as_json", is_flag=True, help="All checks as JSON (schema crashlab.doctor/1).")
@click.option(
    "--self-test",
    is_flag=True,
    help="Also run a tiny faulting and a hanging kernel on GPU 0 and check the whole chain.",
)
@click.option("--no-torch", is_flag=True, help="Do not load torch (it takes seconds).")
@click.option(
    "--out",
    type=click.Path(),
    default=".",
    metavar="DIR",
    help="Where runs would go; the self-test's folder, too.",
)
@click.option("-v", "--verbose", is_flag=True, help="Say of every check why it matters.")
def doctor(as_json: bool, self_test: bool, no_torch: bool, out: str, verbose: bool) -> int:
    """Check everything that evidence of a GPU fault depends on, and say what mends it.

    \b
    Examples:
      crashlab doctor
      crashlab doctor --self-test     proves dump, reader, verdict, hang path
      crashlab doctor --json | jq '.checks[] | select(.status != "ok")'

    Exit code: 0 ready (warnings included), 3 not ready.
    """
    from crashlab.capture.doctor.check import FAIL
    from crashlab.capture.doctor.place import here
    from crashlab.capture.doctor.preflight import preflight

    folder = os.path.abspath(out)
    checks = preflight(here(folder), torch=not no_torch)
    if not as_json:
        _show(checks, verbose)
    if self_test:
        proven = _self_test(folder)
        checks += proven
        if not as_json:
            click.echo("\nself-test")
            _show(proven, verbose)
    ready = not any(check.status == FAIL for check in checks)
    if as_json:
        from crashlab.report.jsontext import written

        value = {"schema": SCHEMA, "ready": ready, "checks": [check._asdict() for check in checks]}
        click.echo(written(value))
    else:
        click.echo("\nready to catch a fault" if ready else "\nnot ready: see FAIL above")
    return 0 if ready else _NOT_READY


def _self_test(folder: str) -> list[Check]:
    from crashlab.capture import selftest
    from crashlab.rundir.writer import default_name

    place = os.path.join(folder, "crashlab-runs")
    fault = selftest.fault_test(os.path.join(place, default_name(("self-test-fault",))), _analyze)
    checks = list(fault.checks)
    if fault.checks[0].name != "fault: kernel":  # there is a GPU
        hang = selftest.hang_test(os.path.join(place, default_name(("self-test-hang",))), _analyze)
        checks += [*hang.checks, selftest.overhead_test()]
    return checks


def _analyze(path: str) -> Report:
    from crashlab.report.fromrundir import analyze_rundir

    return analyze_rundir(path)


def _show(checks: list[Check], verbose: bool) -> None:
    from crashlab.report.text import page

    width = page_width(_WIDTH)
    click.echo(page(_lines(checks, verbose, narrow=width < _NARROW), width), nl=False)


def _lines(checks: list[Check], verbose: bool, *, narrow: bool) -> Iterator[Paragraph]:
    for check in checks:
        yield _line(_MARKS[check.status], check.name, one_line(check.found, 300), narrow)
        if verbose or check.status in ("warn", "fail"):
            yield _line("", "why", check.why, narrow)
        if check.fix and check.status != "ok":
            yield _line("", "fix", one_line(check.fix, 400), narrow)


def _line(mark: str, name: str, text: str, narrow: bool) -> Paragraph:
    from crashlab.report.text import Paragraph

    if narrow:
        return Paragraph(f"{name}: {text}", f"{mark:<6}", " " * 6)
    return Paragraph(text, f"{mark:<6}{name:<20} ", " " * 27)
