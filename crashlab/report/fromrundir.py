"""The report on a run directory: its dumps, its output, its kernel log and its own record, as one case.

Everything is computed from what was recorded, so it can be done again at any time, on any machine.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from crashlab import facts
from crashlab.report import build
from crashlab.report.fromtext import analyze_logs
from crashlab.report.options import DEFAULTS, AnalyzeOptions
from crashlab.report.runfacts import environment_of, run_of, suspect_attempt, xids_of
from crashlab.report.runverdict import settle
from crashlab.rundir import layout
from crashlab.rundir.output import merged_lines, missing
from crashlab.rundir.reader import RunFolder, open_run

_MERGED_LIMIT = 1 << 30


def analyze_rundir(
    path: str | os.PathLike[str], options: AnalyzeOptions = DEFAULTS, attempt: int | None = None
) -> facts.Report:
    """Post-mortem of one attempt of a recorded run (default: the first with anything to explain).

    A run that was cut off is read as far as it goes; what is missing stands in ``provenance``.
    Raises UnreadableInput if the folder is no run directory, or has no such attempt.
    """
    run = open_run(path)
    chosen = attempt if attempt is not None else suspect_attempt(run)
    dumps, notes = dumps_of(run, chosen)
    environment = {**environment_of(run, chosen, dumps), **(options.environment or {})}
    kernel_log = run.file(layout.KERNEL_LOG)
    with _output(run, chosen) as logs:
        options = options._replace(
            logs=(*options.logs, *logs),
            dmesg=(*options.dmesg, *((kernel_log,) if os.path.isfile(kernel_log) else ())),
            environment=environment,
        )
        report = build.analyze(dumps, options) if dumps else analyze_logs(options)
    report = settle(report, run, chosen, bool(dumps))
    others = [n for n in run.attempts if n != chosen]
    if others:
        notes.append(f"This is attempt {chosen}; the run has {len(run.attempts)} attempts.")
    return report._replace(
        run=run_of(run, chosen, report.verdict.kind),
        xid=report.xid or xids_of(run, chosen),
        provenance=(*report.provenance, *notes, *run.problems, *missing(run, chosen)),
    )


def dumps_of(run: RunFolder, attempt: int) -> tuple[list[str], list[str]]:
    """(dumps of an attempt in order of appearance, notes about dumps that are not there any more).

    Files in ``cores/`` that no event names (crashlab was killed before it saw them) belong to the last
    attempt.
    """
    named: dict[str, int] = {}
    sizes: dict[str, int | None] = {}
    dropped: set[str] = set()
    for event in run.events:
        text, number = event.text("path"), event.number("attempt")
        if event.kind == "dump" and text is not None and number is not None:
            path = _inside(run, text)
            named.setdefault(path, number)
            sizes[path] = event.number("bytes")
        elif event.kind == "dump-dropped" and text is not None:
            dropped.add(_inside(run, text))
    found, notes = [], []
    for path, number in named.items():
        if number != attempt:
            continue
        if os.path.isfile(path):
            found.append(path)
        else:
            why = "was removed to keep below the size limit" if path in dropped else "is not there any more"
            size = f" ({sizes[path]:,} bytes)" if sizes[path] is not None else ""
            notes.append(f"The dump {os.path.basename(path)}{size} {why}.")
    if attempt == run.attempts[-1]:
        found += [path for path in _cores(run) if path not in named]
    return found, notes


def _cores(run: RunFolder) -> list[str]:
    folder = run.file(layout.CORES)
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    paths = [os.path.join(folder, name) for name in names]
    return [path for path in paths if os.path.isfile(path) and os.path.getsize(path)]


def _inside(run: RunFolder, path: str) -> str:
    return path if os.path.isabs(path) else run.file(path)


@contextmanager
def _output(run: RunFolder, attempt: int) -> Iterator[tuple[str, ...]]:
    """The attempt's output as one log file in the order of its lines; gone afterwards.

    In a run directory that may be read-only nothing is written. Without room for the copy, stdout and
    stderr are read one after the other.
    """
    segments = [s for s in run.segments if s.attempt == attempt and s.bytes]
    if not segments:
        yield ()
        return
    plain = tuple(s.path for s in segments)
    if len({s.stream for s in segments}) == 1 or sum(s.bytes for s in segments) > _MERGED_LIMIT:
        yield plain
        return
    with tempfile.TemporaryDirectory(prefix="crashlab-") as folder:
        path = os.path.join(folder, "output.log")
        try:
            with open(path, "wb") as file:
                file.writelines(merged_lines(run, attempt))
        except OSError:
            path = ""
        yield (path,) if path else plain
