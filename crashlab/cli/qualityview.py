"""The result of ``crashlab quality`` on the screen or in a file, in any form."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from crashlab.cli.given import Given
from crashlab.cli.tofile import check_target, form_for, write_file
from crashlab.cli.voice import result, tell
from crashlab.cli.width import page_width

if TYPE_CHECKING:
    from crashlab.quality.facts import QualityReport

FORMATS = ("text", "json", "html", "md", "junit")


def check_options(given: Given, options: dict[str, Any]) -> None:
    """Raises UsageError for options that contradict each other; says which change nothing."""
    if options["as_json"]:
        given.refuse(("shape",), "and --json contradict each other.", "Leave one of them out.")
    form = _form(options)
    if form != "text":
        given.idle(("verbose",), f"{form} always holds everything.")
    check_target(options["output"])


def show(report: QualityReport, options: dict[str, Any]) -> None:
    """The result on stdout or into a file."""
    from crashlab.report.quality import render
    from crashlab.report.safe import one_line

    form = _form(options)
    if options["quiet"] and form == "text" and not options["output"]:
        result(f"{one_line(report.verdict.headline)}\n")
        return
    if options["output"]:
        write_file(options["output"], render(report, form, verbose=options["verbose"]))
        tell(f"written to {os.path.abspath(options['output'])}")
    else:
        result(render(report, form, verbose=options["verbose"], width=page_width()))


def _form(options: dict[str, Any]) -> str:
    """The result's format: as asked for, else as the file's name says. Raises UsageError."""
    return form_for("json" if options["as_json"] else options["shape"], options["output"], FORMATS)
