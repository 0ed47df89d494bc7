"""Which options of ``crashlab sweep`` go together."""

from __future__ import annotations

from typing import Any

from crashlab.cli.given import Given
from crashlab.errors import UsageError

_MODES = ("list_levers", "dry_run", "slurm", "report_only", "task")
_RESULT = ("shape", "as_json", "output")
_IDLE = {
    "dry_run": (_RESULT, "a dry run has no result."),
    "slurm": ((*_RESULT, "quiet"), "a script is printed, which has no result yet."),
    "task": (_RESULT, "one run of an array has no result of its own; --report-only judges them together."),
    "report_only": (("place", "ray_address"), "nothing is run."),
}
"""Options that change nothing in a mode, and why."""


def check_options(given: Given, words: tuple[str, ...], options: dict[str, Any]) -> None:
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
        if options["shape"] not in (None, "text", "json"):
            given.refuse(("shape",), "is for results; the catalogue is text or JSON.", "Leave it out.")
        given.idle(sorted(given.names() - {"list_levers", "as_json", "shape"}), "the catalogue is listed.")
        return
    if options["place"] == "ray" and modes and modes[0] in ("slurm", "task"):
        given.refuse(("place",), "ray and Slurm are two places to run.", "Choose one of them.")
    if modes:
        given.idle(*_IDLE[modes[0]])
    if options["place"] != "ray" and not options["report_only"]:
        given.idle(("ray_address",), "the sweep does not run on Ray.")
