"""The commonest call, ``crashlab analyze DUMP``, parsed without click.

Importing click (and ``inspect``, which it imports) takes a quarter of the time of an answer in a hurry. A call
that names dumps and none but the flags below means the same to click, which a test holds; any other call, help,
completion and mistakes included, is click's.
"""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

import os
import sys
from typing import NamedTuple

_COMMAND = "analyze"
_COMPLETION = "_CRASHLAB_COMPLETE"
"""Set by the shell when it asks for completions, whatever the arguments are."""


class Asked(NamedTuple):
    """What a plain call asks for."""

    cores: tuple[str, ...]
    fast: bool
    as_json: bool
    use_exit_code: bool


def asked(arguments: list[str]) -> Asked | None:
    """What the arguments of ``crashlab`` ask for; None when click has to read them."""
    if arguments[:1] != [_COMMAND] or _COMPLETION in os.environ:
        return None
    flags = {argument for argument in arguments[1:] if argument.startswith("-")}
    cores = tuple(argument for argument in arguments[1:] if not argument.startswith("-"))
    if not cores or not flags <= {"--fast", "--json", "--exit-code"}:
        return None
    # A folder is a run or many crashes. Where output is not UTF-8 text, click finds a way.
    if any(map(os.path.isdir, cores)) or str(getattr(sys.stdout, "encoding", None)).lower() != "utf-8":
        return None
    return Asked(cores, "--fast" in flags, "--json" in flags, "--exit-code" in flags)


def analyze(call: Asked) -> int:
    """Write the report on the dumps; the exit code. Raises what :func:`crashlab.analyze` raises."""
    from crashlab.cli import exitcode
    from crashlab.report import build
    from crashlab.report.options import AnalyzeOptions

    if os.environ.get("CRASHLAB_SIGNATURES"):
        from crashlab.cli.unusable import warn_of_variable

        warn_of_variable()
    report = build.analyze(call.cores, AnalyzeOptions(fast=call.fast))
    if call.as_json:
        from crashlab.report import jsonio

        sys.stdout.write(jsonio.dumps(report))
    else:
        from crashlab.cli.width import page_width
        from crashlab.report import text

        sys.stdout.write(text.render(report, width=page_width()))
    return exitcode.of_analysis(report, told=call.use_exit_code)
