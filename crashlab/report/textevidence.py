"""Logs beside a dump, or instead of one: read once, held against the dump, joined to the report."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from crashlab import facts
from crashlab.logs.detect import Evidence, read_evidence_file
from crashlab.logs.driver_facts import DriverException
from crashlab.logs.hardware import CrashedProcess, epoch
from crashlab.logs.text import read_file
from crashlab.logs.xid import XidDetail
from crashlab.postmortem.from_logs import explain_missing, from_evidence
from crashlab.postmortem.host import judge_host
from crashlab.postmortem.log_check import cross_check
from crashlab.postmortem.words import counted
from crashlab.postmortem.xidjoin import join_xid

NO_DUMP_NO_ADDRESS = "there is no dump"
"""What findings from text say of an address, who do not know of the dump."""
_BEFORE_DUMP, _AFTER_DUMP = 3600.0, 600.0
"""Seconds. The dump's stamp is from its end, and a big dump can take many minutes; Xid lines of the
teardown follow it."""


class TextEvidence(NamedTuple):
    """What each given file holds, in the order given."""

    paths: tuple[str, ...]
    parts: tuple[Evidence, ...]

    def driver_exceptions(self) -> tuple[DriverException, ...]:
        """Every exception that a driver log announces."""
        return tuple(e for part in self.parts for dump in part.driver.dumps for e in dump.exceptions)

    def environment(self) -> dict[str, facts.EnvFact]:
        """Versions and hardware that the logs print; an earlier file wins."""
        out: dict[str, facts.EnvFact] = {}
        for part in reversed(self.parts):
            if part.kernel.driver is not None:
                out["driver"] = part.kernel.driver
            if part.story is not None:
                out.update(part.story.environment)
        return out

    @property
    def notable(self) -> Iterator[str]:
        """All lines again, for the log patterns of the catalogue; never more than one in memory."""
        for path in self.paths:
            for line in read_file(path):
                yield line.text

    @property
    def xids(self) -> tuple[XidDetail, ...]:
        return tuple(xid for part in self.parts for xid in part.kernel.xids)


def read_all(logs: Sequence[str], dmesg: Sequence[str]) -> TextEvidence:
    """Read every file; UnreadableInput when one cannot be opened. Any kind of log may stand in either."""
    paths = (*logs, *dmesg)
    return TextEvidence(paths, tuple(read_evidence_file(path) for path in paths))


def _with_damage(report: facts.Report, text: TextEvidence) -> facts.Report:
    """What could not be read limits every verdict, and a clean one most."""
    told = tuple(part.damage for part in text.parts if part.damage is not None)
    if not told:
        return report
    cautions = tuple(f"It does not speak of the rest of a log: {one}" for one in told)
    verdict = report.verdict._replace(does_not_mean=(*report.verdict.does_not_mean, *cautions))
    return report._replace(verdict=verdict)


def join(report: facts.Report, text: TextEvidence, process: CrashedProcess | None = None) -> facts.Report:
    """The report of a readable dump, with the logs held against it.

    ``process`` tells which lines of a kernel log belong to this crash; else the dump's own time and the
    server's process ids do.
    """
    name = report.inputs[0].path if report.inputs else None
    inconsistencies = list(report.inconsistencies)
    readers = dict(report.readers or {})
    for part in text.parts:
        inconsistencies += cross_check(report.faults, part.driver, dump_file=name)
        if part.driver.dumps:
            readers.setdefault("driver_log", _driver_status(part))
    told = (
        s for part in text.parts if part.story is not None and part.story.server for s in part.story.setting
    )
    report = report._replace(
        inconsistencies=tuple(inconsistencies),
        readers=readers,
        provenance=tuple(dict.fromkeys((*report.provenance, *told))),
    )
    report = _with_damage(_with_host(report, text), text)
    return join_xid(report, text.xids, process or _process(report, text))


def without_dump(
    report: facts.Report, text: TextEvidence, process: CrashedProcess | None = None
) -> facts.Report:
    """The report of a dump that cannot be read, or of none: what was printed gives a weaker verdict."""
    readers = dict(report.readers or {})
    for part in text.parts:
        if part.driver.dumps:
            readers.setdefault("driver_log", _driver_status(part))
        report = report._replace(provenance=(*report.provenance, *explain_missing(part.driver)))
    logs = tuple(facts.Input(os.path.basename(path)) for path in text.paths)
    lost = report.verdict.kind == "unreadable"
    if lost:
        report = report._replace(inputs=(*report.inputs, *logs))
    found = [finding for part in text.parts if (finding := from_evidence(part)) is not None]
    if found:
        # A file that names an exception says more than one that only tells of its consequences.
        best = min(found, key=lambda f: f.verdict.exception is None)
        provenance, verdict = report.provenance, best.verdict
        if lost:
            provenance = (*provenance, report.verdict.headline)
            verdict = _beside_unreadable(verdict, report.verdict)
        report = report._replace(
            verdict=verdict,
            faults=best.faults,
            host=best.host,
            bystanders=best.bystanders,
            inconsistencies=(*report.inconsistencies, *best.inconsistencies),
            provenance=tuple(dict.fromkeys((*provenance, *best.provenance))),
        )
    else:
        told = tuple(s for part in text.parts if part.story is not None for s in part.story.sentences)
        if lost and not text.xids:
            told = (f"No GPU error was found in {', '.join(item.path for item in logs[:4])}.", *told)
        report = report._replace(provenance=tuple(dict.fromkeys((*report.provenance, *told))))
    report = _with_damage(report._replace(readers=readers), text)
    return join_xid(report, text.xids, process or _process(report, text))


def _beside_unreadable(verdict: facts.Verdict, dump: facts.Verdict) -> facts.Verdict:
    """A verdict from text that says why the dump beside it tells nothing: somebody may be able to mend that."""
    reason = f"The dump cannot be read: {dump.headline.removeprefix('Unreadable: ')}"
    confidence = verdict.confidence
    if confidence is not None:
        verdict = verdict._replace(confidence=confidence._replace(reasons=(reason, *confidence.reasons)))
    if verdict.address is not None and verdict.address.why == NO_DUMP_NO_ADDRESS:
        verdict = verdict._replace(address=verdict.address._replace(why="the dump cannot be read"))
    return verdict


def _process(report: facts.Report, text: TextEvidence) -> CrashedProcess:
    """What dump and driver lines tell of the crashed process: its ids, and when it died."""
    pids = tuple(dict.fromkeys(d.pid for part in text.parts for d in part.driver.dumps if d.pid is not None))
    stamp = (report.environment or {}).get("dump_time")
    written = epoch(stamp.value) if stamp is not None else None
    if written is None:
        return CrashedProcess(pids)
    return CrashedProcess(pids, (written - _BEFORE_DUMP, written + _AFTER_DUMP))


def _driver_status(part: Evidence) -> facts.ReaderStatus:
    return facts.ReaderStatus("ok", detail=f"{counted(len(part.driver.dumps), 'dump')} announced")


def _with_host(report: facts.Report, text: TextEvidence) -> facts.Report:
    """What the host side blamed, in its place: the first file with a CUDA error, else the server's last word."""
    for part in text.parts:
        found = judge_host(part.errors, report.verdict)
        if found.host is not None:
            return report._replace(
                host=found.host,
                bystanders=(*report.bystanders, *found.bystanders),
                inconsistencies=(*report.inconsistencies, *found.inconsistencies),
                provenance=(*report.provenance, *found.provenance),
            )
    blamed = next(
        (p.story.blamed for p in text.parts if p.story is not None and p.story.blamed is not None), None
    )
    return report if blamed is None else report._replace(host=facts.Host(blamed))
