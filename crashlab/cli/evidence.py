"""What a command was pointed at: a run directory, a report.json, or a dump."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from crashlab.errors import UnreadableInput
from crashlab.facts import Report
from crashlab.inputfile import open_regular
from crashlab.report.timeline import Timeline

_REPORT, _TIMELINE = "report.json", "timeline.jsonl"
_LIMIT = 256 << 20


class Evidence(NamedTuple):
    """A report with the folder it lies in (run directories only) and the course of the run."""

    report: Report
    folder: Path | None = None
    timeline: Timeline | None = None


def load(path: str, debugger: str = "auto") -> Evidence:
    """Read whatever ``path`` is. Raises UnreadableInput when it is nothing of the kind."""
    place = Path(path)
    if place.is_dir():
        return Evidence(_of_folder(place, debugger), place, _read_timeline(place / _TIMELINE))
    if _is_json(place):
        return Evidence(_read_report(place))
    from crashlab.report import build
    from crashlab.report.options import AnalyzeOptions

    return Evidence(build.analyze([path], AnalyzeOptions(debugger=debugger)))


def _of_folder(place: Path, debugger: str) -> Report:
    """The report that a folder holds; that of a run directory is computed anew when it was never written."""
    from crashlab.rundir.layout import is_run

    if not (place / _REPORT).exists() and is_run(str(place)):
        from crashlab.report.fromrundir import analyze_rundir
        from crashlab.report.options import AnalyzeOptions

        return analyze_rundir(str(place), AnalyzeOptions(debugger=debugger))
    return _read_report(place / _REPORT, follow=False)


def _is_json(path: Path) -> bool:
    try:
        with open_regular(path, "report") as file:
            return file.read(64).lstrip()[:1] == b"{"
    except UnreadableInput:
        return False


def _read_report(path: Path, *, follow: bool = True) -> Report:
    from crashlab.report import jsonio

    try:
        with open_regular(path, "report", follow=follow) as file:
            raw = file.read(_LIMIT + 1)
    except UnreadableInput as error:
        hint = f"A run directory holds a {_REPORT}; 'crashlab analyze --json DUMP > {_REPORT}' writes one."
        raise UnreadableInput(str(error), hint=hint) from error
    if len(raw) > _LIMIT:
        raise UnreadableInput(f"{path.name} is larger than {_LIMIT:,} bytes.", hint="This is no report.json.")
    return jsonio.loads(raw)


def _read_timeline(path: Path) -> Timeline | None:
    from crashlab.report.timeline import of_jsonl

    try:
        with open_regular(path, "timeline", follow=False) as file:
            return of_jsonl(file.read(_LIMIT))
    except (OSError, UnreadableInput):
        return None


def local_names() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Login and machine names of this machine, which nothing shareable may hold."""
    import getpass
    import socket

    users = {os.path.basename(os.path.expanduser("~"))}
    try:
        users.add(getpass.getuser())
    except (OSError, KeyError, ImportError):
        users.discard("")  # a container without an entry for its user id
    return tuple(sorted(users - {"", "~", "root"})), (socket.gethostname(),)
