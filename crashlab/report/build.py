"""From evidence files to the one report object: who is asked, in which order, and what joins what."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from crashlab import __version__, facts
from crashlab.errors import UnreadableDump
from crashlab.gpucore.dump import CoreDump
from crashlab.postmortem.disassembly import Disassembly
from crashlab.postmortem.examine import Examination, examine
from crashlab.report.clock import now
from crashlab.report.jsonio import SCHEMA
from crashlab.report.options import DEFAULTS, AnalyzeOptions
from crashlab.report.witnesses import Said, Witnesses

if TYPE_CHECKING:
    from crashlab.report.copies import Copy

_WHY_UNREADABLE = {
    "not-found": "it could not be opened as a file",
    "too-large": "there is no room to unpack it",
}
_HASH_LIMIT = 4 << 20
"""Inputs up to this many bytes are hashed, but for --fast; hashing a 100 GiB dump would cost minutes."""
_COPIES_TOLD = 5


def analyze_dump(path: str | os.PathLike[str], options: AnalyzeOptions = DEFAULTS) -> facts.Report:
    """Post-mortem of one GPU core dump.

    An unreadable dump gives a report of kind ``unreadable``, with what the logs still tell; it does
    not raise. CrashlabError is raised for unusable options only.
    """
    return _analyze_dump(path, options, Witnesses(options))


def _analyze_dump(
    path: str | os.PathLike[str], options: AnalyzeOptions, witnesses: Witnesses
) -> facts.Report:
    started = time.perf_counter()
    try:
        dump = CoreDump.open(path)
    except UnreadableDump as error:
        return _unreadable(path, error, witnesses)
    witnesses.start_debugger(path, dump)
    disassembly = Disassembly(sass_by=options.sass_by, external=not options.fast, tool_path=options.nvdisasm)
    try:
        examination = examine(dump, disassembly, addresses=not options.fast)
    finally:
        disassembly.close()
    native = facts.ReaderStatus("ok", round((time.perf_counter() - started) * 1000, 2), __version__)
    readers = {"native": native, **_sass_reader(disassembly, options)}
    report = _report(_input(path, dump, hashed=not options.fast), examination, readers, dump)
    if not options.fast:
        from crashlab.postmortem.smmap import gpus

        report = report._replace(gpus=gpus(dump, examination.verdict))
    return witnesses.join(report)


def analyze(paths: Sequence[str | os.PathLike[str]], options: AnalyzeOptions = DEFAULTS) -> facts.Report:
    """Post-mortem of one or several dumps of one crash (ranks, workers), as one report.

    Of several, the first real exception is the candidate origin and gives the verdict.
    """
    copies: list[Copy] = []
    if len(paths) > 1:
        from crashlab.report.copies import distinct

        paths, copies = distinct(paths)
    said = Said(options)
    reports = [_analyze_dump(path, options, Witnesses(options, said)) for path in paths]
    report = reports[0]
    if len(reports) > 1:
        from crashlab.report.cases import combine

        report = combine(reports)
    if copies:
        notes = tuple(_read_once(copies, len(paths) + len(copies)))
        report = report._replace(provenance=(*report.provenance, *notes))
    return report


def _read_once(copies: Sequence[Copy], given: int) -> Iterator[str]:
    same = sum(copy.same_file for copy in copies)
    if same:
        yield f"{same} of the {given} paths name a file that was given already; each file was read once."
    for copy in [copy for copy in copies if not copy.same_file][:_COPIES_TOLD]:
        name, first = os.path.basename(os.fspath(copy.path)), os.path.basename(os.fspath(copy.original))
        yield f"{name} holds the same bytes as {first} and was not read as a crash of its own."


def _sass_reader(disassembly: Disassembly, options: AnalyzeOptions) -> dict[str, facts.ReaderStatus]:
    if disassembly.used is not None:
        return {"sass": facts.ReaderStatus("ok", detail=disassembly.used)}
    if disassembly.missing is None:
        return {}
    return {"sass": facts.ReaderStatus("skipped" if options.fast else "missing", detail=disassembly.missing)}


def _report(
    item: facts.Input, examination: Examination, readers: dict[str, facts.ReaderStatus], dump: CoreDump
) -> facts.Report:
    return facts.Report(
        schema=SCHEMA,
        tool=facts.Tool("crashlab", __version__),
        created=now(),
        inputs=(item,),
        verdict=examination.verdict,
        bystanders=examination.bystanders,
        faults=examination.faults,
        inconsistencies=examination.inconsistencies,
        readers=readers,
        environment=_environment(dump),
        provenance=examination.provenance,
    )


def _environment(dump: CoreDump) -> dict[str, facts.EnvFact]:
    """What the dump itself says about the machine."""
    out = {}
    device = next(iter(dump.devices), None)
    if device is not None:
        name = dump.string(device.dev_name)
        if name:
            out["gpu"] = facts.EnvFact(name, "dump: device table")
        if device.arch:
            out["arch"] = facts.EnvFact(device.arch, "dump: device table")
    meta = dump.meta
    if meta is not None and meta.driver_major:
        out["driver"] = facts.EnvFact(f"{meta.driver_major}.{meta.driver_minor or 0}", "dump: metadata")
    if meta is not None and meta.cuda_major:
        out["cuda_driver"] = facts.EnvFact(f"{meta.cuda_major}.{meta.cuda_minor or 0}", "dump: metadata")
    if meta is not None and meta.unix_time:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(meta.unix_time))
        out["dump_time"] = facts.EnvFact(stamp, "dump: metadata")
    return out


def _input(path: str | os.PathLike[str], dump: CoreDump | None, *, hashed: bool) -> facts.Input:
    name = os.path.basename(os.fspath(path))
    try:
        size = os.stat(path).st_size
    except (OSError, ValueError):
        return facts.Input(name)
    complete = True if dump is not None else None
    return facts.Input(name, _sha256(path, size) if hashed else None, size, complete)


def _sha256(path: str | os.PathLike[str], size: int) -> str | None:
    if not 0 < size <= _HASH_LIMIT or not os.path.isfile(path):
        return None
    import hashlib

    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read(_HASH_LIMIT)).hexdigest()
    except OSError:
        return None


def unreadable(
    path: str | os.PathLike[str], error: UnreadableDump, options: AnalyzeOptions = DEFAULTS
) -> facts.Report:
    """The report on a dump that somebody else failed to read."""
    return _unreadable(path, error, Witnesses(options))


def _unreadable(path: str | os.PathLike[str], error: UnreadableDump, witnesses: Witnesses) -> facts.Report:
    complete = False if error.reason == "cut-short" else None
    verdict = facts.Verdict(
        kind="unreadable",
        headline=f"Unreadable: {str(error)[:1].lower()}{str(error)[1:]}",
        confidence=facts.Confidence("high", (_WHY_UNREADABLE.get(error.reason, "its bytes say so"),)),
        does_not_mean=("It does not mean that nothing failed: the evidence is missing, not the fault.",),
    )
    report = facts.Report(
        schema=SCHEMA,
        tool=facts.Tool("crashlab", __version__),
        created=now(),
        inputs=(_input(path, None, hashed=True)._replace(complete=complete),),
        verdict=verdict,
        readers={"native": facts.ReaderStatus("failed", detail=str(error))},
        provenance=(error.hint,) if error.hint else (),
    )
    return witnesses.join_without_dump(report)
