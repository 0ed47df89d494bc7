"""The report on a run directory: its dumps, its output, its kernel log and its own record, as one case.

Everything is computed from what was recorded, so it can be done again at any time, on any machine.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from crashlab import facts
from crashlab.quality import recorded as asked
from crashlab.report import build
from crashlab.report.fromtext import analyze_logs
from crashlab.report.options import DEFAULTS, AnalyzeOptions
from crashlab.report.runfacts import environment_of, process_of, run_of, suspect_attempt, xids_of
from crashlab.report.runverdict import settle
from crashlab.rundir import layout
from crashlab.rundir.output import merged_blocks, missing
from crashlab.rundir.reader import RunFolder, open_run
from crashlab.soak import verdict as soak_verdict

_HEAD, _TAIL = 4 << 20, 12 << 20
"""How much of a long output is read again: its beginning (configuration) and its end (what happened).
Reading 200 MB closely would take minutes."""
_EXCERPT = "output.log"
_TELLING = (b"coredump: ", b"CUDA error", b"cudaError", b"NVRM: Xid", b"EngineDeadError")
"""Lines between that are read all the same."""


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
    with _output(run, chosen, notes) as logs:
        options = options._replace(
            logs=(*options.logs, *logs),
            dmesg=(*options.dmesg, *((kernel_log,) if _size(kernel_log) is not None else ())),
            environment=environment,
            process=process_of(run, chosen),
        )
        report = build.analyze(dumps, options) if dumps else analyze_logs(options)
    report = settle(_named(report, chosen), run, chosen, bool(dumps))
    others = [n for n in run.attempts if n != chosen]
    if others:
        notes.append(f"This is attempt {chosen}; the run has {len(run.attempts)} attempts.")
    report = report._replace(
        run=run_of(run, chosen, report.verdict.kind),
        xid=report.xid or xids_of(run, chosen),
        provenance=(*report.provenance, *notes, *run.problems, *missing(run, chosen)),
    )
    report = soak_verdict.settle_recorded(report, run.of(chosen))
    return asked.settle_recorded(report, run.events)


def _named(report: facts.Report, attempt: int) -> facts.Report:
    """The report with the output under the name that it has in the run directory."""
    name = f"{layout.OUTPUT}/{attempt:03d}.*.log"
    inputs = tuple(one._replace(path=name) if one.path == _EXCERPT else one for one in report.inputs)
    return report._replace(inputs=inputs)


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
        there, recorded = _size(path), sizes[path]
        outside = there is not None and not _lies_in(run, path)
        if there is None:
            why = "was removed to keep below the size limit" if path in dropped else "is not there any more"
            size = f" ({recorded:,} bytes)" if recorded is not None else ""
            notes.append(f"The dump {os.path.basename(path)}{size} {why}.")
        elif outside and there != recorded:
            notes.append(
                f"{path} lies outside the run directory and has another size than was recorded: not read."
            )
        else:
            found.append(path)
            notes += [f"The dump {path} lies outside the run directory."] if outside else []
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
    return [path for path in paths if _size(path) and _lies_in(run, path)]


def _inside(run: RunFolder, path: str) -> str:
    return path if os.path.isabs(path) else run.file(path)


def _size(path: str) -> int | None:
    """Bytes of a regular file; None for anything else. Run directories are handed around, so a link in one may
    point at any file of ours."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _lies_in(run: RunFolder, path: str) -> bool:
    """Whether a file is really inside; dumps are elsewhere only if the user's own CUDA_COREDUMP_FILE said so."""
    folder = os.path.realpath(run.path)
    return os.path.commonpath((folder, os.path.realpath(path))) == folder


@contextmanager
def _output(run: RunFolder, attempt: int, notes: list[str]) -> Iterator[tuple[str, ...]]:
    """The attempt's output as one log file in the order of its lines; gone afterwards.

    Nothing is written into the run directory, which may be read-only.
    """
    total = sum(s.bytes for s in run.segments if s.attempt == attempt)
    if not total:
        yield ()
        return
    with tempfile.TemporaryDirectory(prefix="crashlab-") as folder:
        path = os.path.join(folder, _EXCERPT)
        try:
            with open(path, "wb") as file:
                # A program may print a packed file or an ELF: behind a carriage return it is text all the same.
                file.write(b"\r")
                skipped = _write_excerpt(file, merged_blocks(run, attempt), total)
        except OSError as error:
            notes.append(f"The output could not be read again: {error.strerror}.")
            yield ()
            return
        if skipped:
            notes.append(f"{skipped:,} bytes in the middle of the output were not searched.")
        yield (path,)


def _write_excerpt(file: BinaryIO, blocks: Iterator[bytes], total: int) -> int:
    """The beginning and the end, and telling lines between; how many bytes were left out."""
    at = skipped = 0
    for block in blocks:
        at += len(block)
        if _HEAD < at <= total - _TAIL:
            kept = []
            if any(word in block for word in _TELLING):
                kept = [line for line in block.split(b"\n") if any(word in line for word in _TELLING)]
            file.writelines(line + b"\n" for line in kept)
            skipped += len(block) - sum(len(line) + 1 for line in kept)
        else:
            file.write(block)
    return skipped
