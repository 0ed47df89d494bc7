"""One quality run from the empty run directory to the report: arms one after the other, then the verdict."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from crashlab.cli import exitcode
from crashlab.cli.qualityargs import Target
from crashlab.cli.voice import tell
from crashlab.errors import CrashlabError

if TYPE_CHECKING:
    from crashlab.capture.signals import SignalBox
    from crashlab.quality.attend import Attended
    from crashlab.quality.build import Heard
    from crashlab.quality.facts import QualityReport
    from crashlab.quality.settings import Arm, Settings
    from crashlab.quality.talk import Talk

ANSWERS, TASKS = "answers.jsonl", "tasks.jsonl"
RESULT = {"json": "quality.json", "text": "quality.txt", "html": "quality.html"}
_CODES = {"garbage": 13, "degraded": 13, "inconclusive": 15}
_NEVER_READY, _HOST_DEATH, _INTERRUPTED = 14, 16, 130
_LOG_BYTES = 8 << 20
_IN_ARMS = ("a", "b", "a_env", "b_env")
"""Options that stand in the arms, with secrets taken out word by word."""


class Wanted(NamedTuple):
    """``arms`` by name; ``environments`` and ``logs`` of each; ``facts`` the user knows of the machine."""

    settings: Settings
    arms: Mapping[str, Target]
    environments: Mapping[str, Mapping[str, str]]
    logs: Mapping[str, str | None]
    facts: Mapping[str, str]
    options: Mapping[str, Any]


class QualityRun:
    """:meth:`go` gives the exit code; ``report`` is there unless nothing could be asked."""

    def __init__(self, wanted: Wanted) -> None:
        from crashlab.rundir.writer import RunWriter

        self.report: QualityReport | None = None
        self._wanted = wanted
        self._quiet = bool(wanted.options["quiet"])
        first = next(iter(wanted.arms.values()))
        self._writer = RunWriter.create(wanted.options["out"], first.argv or ("quality",))
        self._ends: list[Attended] = []
        self._crash = 0

    def go(self) -> int:
        """All arms, the report, the exit code."""
        from crashlab.soak.hangup import LoadSignals

        writer = self._writer
        self._describe()
        self._say(f"evidence goes to {writer.path}")
        code = 1
        try:
            heard: list[Heard] = []
            with LoadSignals() as box:
                for name, target in self._wanted.arms.items():
                    heard.append(self._arm(box, name, target, heard[0].talk if heard else None))
                    if self._ends[-1].end != "complete":
                        break
            self._conclude(heard)
            code = self._code()
        except CrashlabError as error:
            code = error.exit_code
            raise
        finally:
            writer.finish(exit_code=code)
        for problem in writer.problems:
            self._say(f"incomplete: {problem}")
        return code

    def _describe(self) -> None:
        """``run.json`` and the questions, before anything is asked."""
        import json

        from crashlab.capture.machine import machine_facts
        from crashlab.rundir import redact

        wanted, writer = self._wanted, self._writer
        arms = {
            name: {
                "argv": redact.command(target.argv),
                "url": redact.text(target.url),
                "environment": redact.variables(wanted.environments[name]),
            }
            for name, target in wanted.arms.items()
        }
        shown = {
            key: redact.text(str(value))
            for key, value in wanted.options.items()
            if value not in (None, ()) and key not in _IN_ARMS
        }
        first = next(iter(wanted.arms.values()))
        writer.start(
            {"argv": redact.command(first.argv), "cwd": os.getcwd(), "arms": arms, "options": shown,
             "environment": redact.variables(os.environ), "machine": machine_facts(),
             "overflow": writer.overflow}
        )  # fmt: skip
        rows = (json.dumps(task._asdict(), ensure_ascii=False) for task in wanted.settings.suite.tasks)
        writer.write_file(TASKS, "".join(f"{row}\n" for row in rows))

    def _arm(self, box: SignalBox, name: str, target: Target, reference: Talk | None) -> Heard:
        from crashlab.facts import EnvFact
        from crashlab.quality.attend import attend
        from crashlab.quality.build import Heard
        from crashlab.quality.examiner import Examiner
        from crashlab.quality.settings import Arm
        from crashlab.rundir.journal import Journal

        wanted, writer = self._wanted, self._writer
        variables = tuple(wanted.environments[name].items())
        key = os.environ.get("CRASHLAB_API_KEY")
        arm = Arm(name, target.url, wanted.options["model"], key, target.argv, variables)
        number = len(self._ends) + 1
        server, settle = self._server(box, arm, number)
        journal = Journal(writer.file(ANSWERS))
        examiner = Examiner(
            arm,
            wanted.settings,
            journal.append,
            reference=reference,
            say=self._say,
            folder=writer.path,
        )
        self._say(f"arm {name}: waiting for {target.url}")
        try:
            attended = attend(examiner, server)
            server.stop("quality")
        finally:
            examiner.stop()
            settle()
            if journal.lost:
                writer.problem(f"{journal.lost} answers found no place on disk")
            journal.close()
        if examiner.error is not None:
            raise examiner.error
        self._ends.append(attended)
        talk = examiner.talk
        if attended.why is not None:
            talk = talk._replace(problem=attended.why)
        writer.event("quality-arm", attempt=number, arm=name, end=attended.end, why=attended.why)
        if arm.argv and attended.end == "died":
            self._examine(number)
        env = {key: EnvFact(value, "user") for key, value in wanted.facts.items()}
        return Heard(arm, talk, self._log(name, number), env)

    def _server(self, box: SignalBox, arm: Arm, number: int) -> tuple[Any, Callable[[], None]]:
        """(the server's handle, what settles its record)."""
        from crashlab.soak.servers import Remote, Supervised

        if not arm.argv:
            return Remote(box), lambda: None
        from crashlab.capture import session
        from crashlab.capture.config import RunConfig
        from crashlab.capture.plan import plan_environment
        from crashlab.capture.supervise import Supervisor
        from crashlab.soak.serverurl import listens

        if (place := listens(arm.url)) is not None:
            self._say(f"another server answers on {place} already: it may be the one that is asked")
        options, writer = self._wanted.options, self._writer
        environment = {**os.environ, **dict(arm.environment)}
        hang_dumps = not options["no_hang_dumps"]
        plan = plan_environment(environment, writer.path, dump=options["dump"], hang_dumps=hang_dumps)
        config = RunConfig(
            arm.argv,
            environment,
            plan,
            os.getcwd(),
            hang_dumps=hang_dumps,
            max_dumps_bytes=options["max_dumps_bytes"],
            sinks=(-1, -1),
        )
        supervisor = Supervisor(config, writer, box, number, say=self._say, overflow=writer.overflow)
        supervisor.start()

        def settle() -> None:
            while not supervisor.over:
                supervisor.stop("quality: error")
                supervisor.step()
            session.settle(config, writer, supervisor.watch.samples(), supervisor.finish())

        return Supervised(supervisor, lambda: None), settle

    def _log(self, name: str, number: int) -> tuple[str, ...]:
        """Lines of the arm's server: as recorded here, else of the file that was named."""
        path = self._wanted.logs[name]
        if path is not None:
            from crashlab.quality.jsonlines import read_text

            return tuple(read_text(path).splitlines())
        if not self._wanted.arms[name].argv:
            return ()
        from crashlab.rundir.reader import open_run

        lines: list[str] = []
        run = open_run(self._writer.path)
        for stream in ("stdout", "stderr"):
            for segment in run.stream(number, stream):
                with open(segment.path, "rb") as file:
                    lines += file.read(_LOG_BYTES).decode("utf-8", "replace").splitlines()
        return tuple(lines)

    def _examine(self, number: int) -> None:
        """The server died: the usual post-mortem, and its exit code."""
        from crashlab.report import jsonio, text
        from crashlab.report.fromrundir import analyze_rundir
        from crashlab.report.options import AnalyzeOptions
        from crashlab.rundir import layout

        options = AnalyzeOptions(fast=bool(self._wanted.options["fast"]))
        report = analyze_rundir(self._writer.path, options, number)
        for place in (layout.case_folder(number), ""):
            self._writer.write_file(os.path.join(place, layout.REPORT), jsonio.dumps(report))
            self._writer.write_file(
                os.path.join(place, layout.REPORT_TEXT), text.render(report, verbose=True)
            )
        self._say(f"the server died: {report.verdict.headline}")
        self._crash = exitcode.of_report(report) or _HOST_DEATH

    def _conclude(self, heard: list[Heard]) -> None:
        from crashlab.quality.build import build_report
        from crashlab.quality.recorded import EVENT
        from crashlab.report.quality import render
        from crashlab.report.quality import text as plain

        if not heard:
            return
        report = build_report(self._wanted.settings, heard, notes=self._cut_short(len(heard)))
        report = self.report = self._as_interrupted(report)
        self._writer.write_file(RESULT["json"], render(report, "json"))
        self._writer.write_file(RESULT["html"], render(report, "html"))
        # A bundle takes the text as it is: questions of the user's own stay out of it.
        words = plain.render(report, verbose=True, words=report.suite.source is None)
        self._writer.write_file(RESULT["text"], words)
        verdict = report.verdict
        self._writer.event(EVENT, verdict=verdict.kind, headline=verdict.headline)

    def _as_interrupted(self, report: QualityReport) -> QualityReport:
        """What a part of the questions shows is a finding only if it is garbage."""
        from crashlab.postmortem.words import counted
        from crashlab.quality.facts import DEGRADED, GARBAGE, INCONCLUSIVE

        if self._ends[-1].end != "interrupted":
            return report
        last = report.arms[-1]
        passes = last.passes
        answers = passes[-1].counts.answered if passes else 0
        words = f"Interrupted while arm {last.name} was asked ({counted(answers, 'answer')} so far)"
        if not answers:
            words = f"Interrupted before arm {last.name} answered a question"
        words += "".join(f"; arm {name} was not asked" for name in [*self._wanted.arms][len(self._ends) :])
        verdict = report.verdict
        if verdict.kind in (GARBAGE, DEGRADED):
            return report._replace(verdict=verdict._replace(headline=f"{verdict.headline}. {words}"))
        return report._replace(verdict=verdict._replace(kind=INCONCLUSIVE, headline=words))

    def _cut_short(self, asked: int) -> list[str]:
        if asked == len(self._wanted.arms):
            return []
        return ["Arm B was not asked, so nothing was compared."]

    def _code(self) -> int:
        """A server's death outranks what it answered before; then readiness, interrupts, the verdict."""
        ends = [one.end for one in self._ends]
        if self._crash:
            return self._crash
        if "never-ready" in ends:
            return _NEVER_READY
        if "interrupted" in ends:
            return _INTERRUPTED
        return _CODES.get(self.report.verdict.kind, 0) if self.report is not None else 15

    def _say(self, text: str) -> None:
        if not self._quiet:
            self._quiet = not tell(text)
