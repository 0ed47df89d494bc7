"""``crashlab report``: render a report again in another form, or compare two crashes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crashlab.cli.given import Given
from crashlab.cli.otherresults import Render, other_result
from crashlab.cli.tofile import form_for, write_file
from crashlab.cli.width import page_width, sentence_width
from crashlab.errors import UsageError

if TYPE_CHECKING:
    from crashlab.cli.evidence import Evidence
    from crashlab.facts import Report

_FORMS = ("vllm", "flashinfer", "pytorch", "sglang", "llama.cpp", "nvidia")
_FORMATS = ("text", "md", "html", "json", "junit")


@click.command()
@click.argument(
    "inputs",
    nargs=-1,
    required=True,
    metavar="RUNDIR|REPORT.JSON|DUMP|SWEEP [OTHER]",
    type=click.Path(readable=False),
)
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    help="What to write; html with -o FILE.html and so on, else text.",
)
@click.option(
    "--for", "target", type=click.Choice(_FORMS), help="Markdown in the order of this project's issue form."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(readable=False),
    metavar="FILE",
    help="Where to write; standard output without it.",
)
@click.option(
    "--open", "show", is_flag=True, help="Open the HTML report, or the project's empty form, in a browser."
)
@click.option(
    "--debugger",
    default="auto",
    show_default=True,
    metavar="auto|always|never|PATH",
    help="For a dump: whether to ask cuda-gdb as a second witness.",
)
@click.option(
    "-v", "--verbose", is_flag=True, help="Text: whole SASS window, every fault, all readers and notes."
)
def report(
    inputs: tuple[str, ...], form: str | None, target: str | None, output: str | None, show: bool, debugger: str,
    verbose: bool,
) -> int:  # fmt: skip
    """Render a report in another form; with two of them, say whether they are the same bug.

    Issue texts (md) are redacted. Nothing is ever sent: with --for, the address of the project's form is
    printed, and a person pastes the text.

    \b
    Examples:
      crashlab report run1/ --format html -o report.html --open
      crashlab report report.json --for vllm -o issue.md
      crashlab report core.nvcudmp --format junit -o junit.xml
      crashlab report monday.json friday.json
      crashlab report sweeps/moe --format html -o moe.html
    """
    from crashlab.cli.evidence import load

    if len(inputs) > 2:
        raise UsageError(
            "More than two reports cannot be compared.", hint="Give one to render, two to compare."
        )
    given = Given(click.get_current_context())
    output = None if output == "-" else output
    other = other_result(inputs[0])
    if other is not None:
        return _other(given, other, inputs, _format(form, target, output, show), output, verbose, show)
    form = _format(form, target, output, show)
    _check(given, inputs, form, target)
    _refuse_input(inputs, output)
    if len(inputs) == 2:
        content, code = _comparison(inputs, debugger, form, to_screen=output is None)
        _write(content, output)
        return code
    evidence = load(inputs[0], debugger)
    content = _rendered(evidence, form, target, verbose, to_screen=output is None)
    path = _write(content, output, temporary=show and form == "html")
    _after(evidence, form, target, path, show)
    return 3 if evidence.report.verdict.kind == "unreadable" else 0


def _other(
    given: Given, other: Render, inputs: tuple[str, ...], form: str, output: str | None, verbose: bool, show: bool
) -> int:  # fmt: skip
    """A sweep or a quality run in another form."""
    given.refuse(("target",), "is for the report of one crash.", "Use --format md.")
    if len(inputs) > 1:
        raise UsageError("Only reports of crashes can be compared.", hint="Give one to render.")
    given.idle(("debugger",), "no dump is read.")
    _refuse_input(inputs, output)
    content = other(form, verbose, page_width() if output is None else None)
    path = _write(content, output, temporary=show and form == "html")
    if path is not None and show and form == "html":
        import webbrowser

        click.echo(f"The report is at {path}", err=True)
        webbrowser.open(path.resolve().as_uri())
    return 0


def _check(given: Given, inputs: tuple[str, ...], form: str, target: str | None) -> None:
    """UsageError for options that contradict each other; a line on stderr for those that change nothing."""
    if len(inputs) == 2:
        given.refuse(("target",), "is for one report, and these are two to compare.", "Give one report.")
        given.refuse(("show",), "shows a page, and a comparison is text or json.", "Leave it out.")
        given.idle(("verbose",), "a comparison has one form.")
    elif form != "html" and target is None:
        given.refuse(
            ("show",),
            f"opens a page or a project's form, not {form}.",
            "Use --format html, or --for PROJECT.",
        )
    if form != "text":
        given.idle(("verbose",), f"{form} always holds everything.")
    if all(path.endswith(".json") or os.path.exists(os.path.join(path, "report.json")) for path in inputs):
        given.idle(("debugger",), "no dump is read.")


def _refuse_input(inputs: tuple[str, ...], output: str | None) -> None:
    """Evidence is never written over: a report may replace an older report, but no input."""
    if output is None:
        return
    for path in inputs:
        if os.path.exists(output) and os.path.exists(path) and os.path.samefile(output, path):
            raise UsageError(f"{output} is what is being read.", hint="Choose another name with -o.")


def _format(form: str | None, target: str | None, output: str | None, show: bool) -> str:
    """The format asked for, else the one that other options imply."""
    if target is not None:
        if form not in (None, "md"):
            raise UsageError(f"--for writes Markdown, not {form}.", hint="Leave --format out.")
        return "md"
    return form_for(form, output, _FORMATS, "html" if show else "text")


def _rendered(evidence: Evidence, form: str, target: str | None, verbose: bool, *, to_screen: bool) -> str:
    report = evidence.report
    if form == "json":
        from crashlab.report import jsonio

        return jsonio.dumps(report)
    if form == "junit":
        from crashlab.report import junit

        return junit.render(report)
    if form == "text":
        from crashlab.report import text

        return text.render(report, verbose=verbose, width=page_width() if to_screen else text.WIDTH)
    if not report.commands and report.verdict.kind != "unreadable":
        from crashlab.report.byhand import with_commands

        report = with_commands(report, [item.path for item in report.inputs])
    if form == "html":
        from crashlab.report import html

        return html.render(report, evidence.timeline)
    from crashlab.report import markdown

    return markdown.render(_redacted(report), markdown.FORMS[target] if target else markdown.PLAIN)


def _redacted(report: Report) -> Report:
    """A copy fit for the public: also without this machine's own names."""
    from crashlab.cli.evidence import local_names
    from crashlab.report.redact import Redactor

    users, hosts = local_names()
    redactor = Redactor(users=users, hosts=hosts)
    redactor.learn_report(report)
    return redactor.report(report)


def _comparison(inputs: tuple[str, ...], debugger: str, form: str, *, to_screen: bool) -> tuple[str, int]:
    """The text, and the exit code: 3 when one of them is no readable evidence."""
    from crashlab.cli.evidence import load
    from crashlab.report import compare, jsonio
    from crashlab.report.text import UNBROKEN

    if form not in ("text", "json"):
        raise UsageError(f"A comparison is written as text or json, not {form}.", hint="Use --format text.")
    first, second = (load(path, debugger).report for path in inputs)
    comparison = compare.compare(first, second)
    code = 3 if "unreadable" in (first.verdict.kind, second.verdict.kind) else 0
    if form == "text":
        names = Path(inputs[0]).name, Path(inputs[1]).name
        return compare.render(comparison, *names, width=sentence_width() if to_screen else UNBROKEN), code
    from crashlab.report.jsontext import written

    return written(jsonio.to_json(comparison)) + "\n", code


def _write(content: str, output: str | None, *, temporary: bool = False) -> Path | None:
    """To the file, else to a temporary one for the browser, else to standard output."""
    if output is None and not temporary:
        sys.stdout.buffer.write(content.encode("utf-8", "replace"))
        return None
    if output is None:
        import tempfile

        with tempfile.NamedTemporaryFile(
            "w", suffix=".html", prefix="crashlab-", delete=False, encoding="utf-8"
        ) as file:
            file.write(content)
        return Path(file.name)
    write_file(output, content)
    return Path(output)


def _after(evidence: Evidence, form: str, target: str | None, path: Path | None, show: bool) -> None:
    """The address of the form, on standard error; a browser when it was asked for."""
    address = path.resolve().as_uri() if path is not None and form == "html" else None
    if target is not None:
        from crashlab.report import markdown

        address = markdown.prefilled_url(_redacted(evidence.report), markdown.FORMS[target])
        click.echo(f"Paste it here; nothing is sent before you do: {address}", err=True)
    if path is not None and show and form == "html":
        click.echo(f"The report is at {path}", err=True)
    if show and address:
        import webbrowser

        webbrowser.open(address)
