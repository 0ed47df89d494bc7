"""The other witnesses beside the dump: cuda-gdb, logs, the catalogue. Each costs a section, never the report."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from crashlab import facts
from crashlab.gpucore.dump import CoreDump
from crashlab.report.options import AnalyzeOptions

if TYPE_CHECKING:
    import threading

    from crashlab.debugger.session import SessionResult
    from crashlab.report.textevidence import TextEvidence


class Said:
    """All logs that the options name, read when they are first asked for, and once for all dumps of a crash."""

    def __init__(self, options: AnalyzeOptions) -> None:
        self._options = options
        self._text: TextEvidence | None = None

    @property
    def text(self) -> TextEvidence | None:
        """None when the options name no log."""
        if self._text is None and (self._options.logs or self._options.dmesg):
            from crashlab.report.textevidence import read_all

            self._text = read_all(self._options.logs, self._options.dmesg)
        return self._text


class Witnesses:
    """Asks every optional source that the options allow and joins what it says to the report."""

    def __init__(self, options: AnalyzeOptions, said: Said | None = None) -> None:
        self._options = options
        self._said = said or Said(options)
        self._session: SessionResult | None = None
        self._misfits: tuple[str, ...] = ()
        self._absent = False
        self._thread: threading.Thread | None = None

    def start_debugger(self, path: str | os.PathLike[str], dump: CoreDump) -> None:
        """Start cuda-gdb beside the native reading, when it was asked for and is there."""
        options = self._options
        if options.fast or options.debugger == "never":
            return
        import threading

        meta, device = dump.meta, next(iter(dump.devices), None)
        driver = (meta.driver_major, meta.driver_minor or 0) if meta and meta.driver_major else None
        sm = None
        if device is not None and device.sm_major is not None and device.sm_minor is not None:
            sm = (device.sm_major, device.sm_minor)

        def work() -> None:
            # Looking for candidates asks each for its version, and one that hangs must delay nobody.
            from crashlab.debugger import candidates

            option = None if options.debugger in ("auto", "always") else options.debugger
            found = candidates.find(option)
            choice = candidates.choose(found, driver, sm)
            self._misfits = choice.misfits
            if found or options.debugger != "auto":
                from crashlab.debugger.session import run_session

                self._session = run_session(path, choice, seconds=options.debugger_timeout)
            else:
                self._absent = True

        self._thread = threading.Thread(target=work, name="cuda-gdb", daemon=True)
        self._thread.start()

    @property
    def text(self) -> TextEvidence | None:
        """All logs that the options name; None when there are none."""
        return self._said.text

    def join(self, report: facts.Report) -> facts.Report:
        """The report of a readable dump with what the other witnesses add."""
        report = self._with_debugger(report)
        if self.text is not None:
            from crashlab.report.textevidence import join

            report = join(report, self.text, self._options.process)
        return self._with_catalogue(report)

    def join_without_dump(self, report: facts.Report) -> facts.Report:
        """The report of an unreadable dump with what the other witnesses still tell."""
        if self.text is not None:
            from crashlab.report.textevidence import without_dump

            report = without_dump(report, self.text, self._options.process)
        return self._with_catalogue(report)

    def _with_debugger(self, report: facts.Report) -> facts.Report:
        if self._thread is None:
            return report
        self._thread.join(self._options.debugger_timeout + 10)
        session = self._session
        if self._absent:
            return report
        if session is None:
            lost = facts.ReaderStatus("timed-out", detail="cuda-gdb could not be ended in time")
            return report._replace(readers={**(report.readers or {}), "cuda_gdb": lost})
        from crashlab.postmortem.reconcile import reconcile

        status = session.reader_status()
        log = self.text.driver_exceptions() if self.text is not None else ()
        found = reconcile(report.faults, report.verdict, session.transcript, status, log, self._misfits)
        return with_opinion(
            report._replace(
                readers={**(report.readers or {}), "cuda_gdb": status},
                inconsistencies=(*report.inconsistencies, *found.inconsistencies),
                provenance=(*report.provenance, *found.notes),
            ),
            found.agreements,
            found.doubts,
        )

    def _with_catalogue(self, report: facts.Report) -> facts.Report:
        """Environment facts by their rank, known failures, keys."""
        from crashlab.signatures.catalogue import Skipped, packed
        from crashlab.signatures.environment import derive
        from crashlab.signatures.key import keys
        from crashlab.signatures.match import match

        environment: dict[str, facts.EnvFact] = dict(report.environment or {})
        if self.text is not None:
            environment = {**self.text.environment(), **environment}
        environment.update(self._options.environment or {})
        report = report._replace(environment=derive(environment))
        lines = self.text.notable if self.text is not None else ()
        if report.verdict.kind not in ("unreadable", "no-fault") or lines:
            # Packages that bring entries of their own are searched for only when there is time for it.
            # An entry of the user's own that cannot be used costs itself, never the report.
            skipped: list[Skipped] = []
            entries = packed(plugins=not self._options.fast, skipped=skipped)
            report = report._replace(
                signatures=match(report, env=report.environment, log=lines, run=report.run, entries=entries),
                provenance=(*report.provenance, *(item.note() for item in skipped)),
            )
        return report._replace(signature_key=keys(report.verdict))


def with_opinion(report: facts.Report, agreements: tuple[str, ...], doubts: tuple[str, ...]) -> facts.Report:
    """The report whose confidence takes a second witness into account; doubts lower a high level."""
    confidence = report.verdict.confidence
    if confidence is None or not (agreements or doubts):
        return report
    level = "medium" if doubts and confidence.level == "high" else confidence.level
    changed = facts.Confidence(level, (*confidence.reasons, *agreements, *doubts))
    return report._replace(verdict=report.verdict._replace(confidence=changed))
