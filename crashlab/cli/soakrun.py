"""One soak from the empty run directory to the report: attempts, their post-mortems, the exit code."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from crashlab.cli import exitcode
from crashlab.cli.soakview import View
from crashlab.errors import MissingTool

if TYPE_CHECKING:
    from crashlab.capture.config import RunConfig
    from crashlab.capture.signals import SignalBox
    from crashlab.facts import Report
    from crashlab.rundir.writer import RunWriter
    from crashlab.soak.attempt import Snapshot
    from crashlab.soak.exposure import Exposure
    from crashlab.soak.outcome import Outcome
    from crashlab.soak.settings import SoakSettings

_ENDS = ("fault", "died", "stall", "garbage")
_ENDED = {
    "fault": "GPU fault",
    "died": "the server died",
    "never-ready": "never ready",
    "refuses": "no load could be put on the server",
    "failing": "requests fail",
}
"""What is said of an outcome before the evidence was looked at."""
INTERRUPTED = 130


class Wanted(NamedTuple):
    """``config`` None: the server runs already. ``repeat`` attempts at most, going on after a fault.
    ``fast``: no cuda-gdb and nvdisasm in the post-mortem. ``label`` names the run directory.
    ``questions``: how many are asked of a server that came through."""

    settings: SoakSettings
    writer: RunWriter
    config: RunConfig | None
    repeat: int = 1
    fast: bool = False
    json_lines: bool = False
    quiet: bool = False
    plain_every: float = 60.0
    questions: int = 0


class Case(NamedTuple):
    """What an attempt came to."""

    attempt: int
    outcome: Outcome
    report: Report
    exposure: Exposure
    seconds: float


def need_packages() -> None:
    """Raises MissingTool when a package that only soak and demo need is not there."""
    import importlib.util

    missing = [
        name for name in ("aiohttp", "prometheus_client", "rich") if importlib.util.find_spec(name) is None
    ]
    if missing:
        raise MissingTool(
            f"Putting load on a server needs {', '.join(missing)}.",
            hint="Install crashlab anew (pip install .); these come with it.",
        )


class SoakRun:
    """``cases`` grow by one each attempt. ``states`` are those that were seen in any of them."""

    def __init__(self, wanted: Wanted) -> None:
        self.cases: list[Case] = []
        self.code = 0
        self.states: set[str] = set()
        self._taken: str | None = None
        self._wanted = wanted
        self._writer = wanted.writer
        self._view = View(json_lines=wanted.json_lines, quiet=wanted.quiet, plain_every=wanted.plain_every)

    def go(self) -> int:
        """All attempts; the exit code."""
        from crashlab.soak.hangup import LoadSignals

        try:
            with LoadSignals() as box, self._view:
                self._attempts(box)
            self.code = self._exit_code()
        finally:
            self._writer.finish(exit_code=self.code)
        for problem in self._writer.problems:
            self._view.say(f"incomplete: {problem}")
        return self.code

    def _attempts(self, box: SignalBox) -> None:
        wanted, settings = self._wanted, self._wanted.settings
        for number in range(1, max(1, wanted.repeat) + 1):
            case = self._attempt(box, settings, number)
            self.cases.append(case)
            if case.outcome.kind not in _ENDS or number == wanted.repeat:
                break
            settings = settings._replace(
                seed=settings.seed + 1,  # the same load again would only repeat what is known
                budget=settings.budget.left(case.exposure),
            )
            if settings.budget.spent(_nothing()) is not None:
                break
            self._view.say(f"attempt {number}: {case.report.verdict.headline}; starting again")
        if len(self.cases) > 1:
            for line in summary(self.cases):
                self._view.say(line)

    def _attempt(self, box: SignalBox, settings: SoakSettings, number: int) -> Case:
        from crashlab.cli.qualityclose import Closing
        from crashlab.soak.attempt import Attempt
        from crashlab.soak.driver import LoadDriver
        from crashlab.soak.loadlogs import LoadLogs
        from crashlab.soak.outcome import EVENT

        writer = self._writer
        logs = LoadLogs(writer, number)
        load = LoadDriver(settings, logs.request, logs.sample)
        server, settle = self._server(box, number, load)
        closing = Closing(server, self._wanted.questions, settings, writer, self._view.say)
        attempt = Attempt(settings, closing, load, logs.event, self._show, number=number)
        try:
            outcome = closing.judged(attempt.run())
        finally:
            load.stop()
            settle()
        if self._taken is not None:
            outcome = outcome._replace(why=f"{outcome.why}; {self._taken}")
        writer.event(EVENT, attempt=number, **outcome.to_fields())
        report = self._examine(outcome, number)
        return Case(number, outcome, report, attempt.exposure, attempt.exposure.seconds)

    def _show(self, snapshot: Snapshot) -> None:
        self.states.add(snapshot.status.state)
        self._view.show(snapshot)

    def _server(self, box: SignalBox, number: int, load: Any) -> tuple[Any, Any]:
        """(the server's handle, what settles its record)."""
        from crashlab.rundir import layout
        from crashlab.soak.servers import Remote, Supervised
        from crashlab.soak.serverurl import listens

        config, writer, url = self._wanted.config, self._writer, self._wanted.settings.url
        if config is None:
            return Remote(box), lambda: None
        from crashlab.capture import session
        from crashlab.capture.supervise import Supervisor

        def scrape() -> None:
            raw = load.probe.raw if load.probe is not None else b""
            if raw:
                writer.write_file(layout.metrics_name(number), raw)

        config = config._replace(before_stacks=(*config.before_stacks, scrape))
        self._taken = None
        if (place := listens(url)) is not None:
            self._taken = f"another server answered on {place} before the command was started"
            self._view.say(f"{self._taken}: it may be the one that gets the load")
        supervisor = Supervisor(config, writer, box, number, say=self._view.say, overflow=writer.overflow)
        supervisor.start()

        def settle() -> None:
            while not supervisor.over:
                supervisor.stop("soak: error")
                supervisor.step()
            session.settle(config, writer, supervisor.watch.samples(), supervisor.finish())

        return Supervised(supervisor, scrape), settle

    def _examine(self, outcome: Outcome, number: int) -> Report:
        from crashlab.report import jsonio, text
        from crashlab.report.fromrundir import analyze_rundir
        from crashlab.report.options import AnalyzeOptions
        from crashlab.rundir import layout

        quiet = outcome.kind in ("clean", "interrupted")
        if not quiet:
            ended = _ENDED.get(outcome.kind, outcome.kind)
            self._view.say(f"{ended}: {outcome.why}; examining the evidence")
        options = AnalyzeOptions(fast=self._wanted.fast or quiet)
        report = analyze_rundir(self._writer.path, options, number)
        places = [layout.case_folder(number)] if not quiet or number > 1 else []
        if not any(case.outcome.kind in _ENDS for case in self.cases):
            places.append("")
        for place in places:
            self._writer.write_file(os.path.join(place, layout.REPORT), jsonio.dumps(report))
            self._writer.write_file(
                os.path.join(place, layout.REPORT_TEXT), text.render(report, verbose=True)
            )
        self._writer.event(
            "analysed", attempt=number, verdict=report.verdict.kind, headline=report.verdict.headline
        )
        return report

    def _exit_code(self) -> int:
        """That of the first finding; without one 130 after an interrupt."""
        interrupted = bool(self.cases) and self.cases[-1].outcome.kind == "interrupted"
        for case in self.cases:
            code = exitcode.of_report(case.report)
            nothing = (
                (0, exitcode.UNREADABLE, exitcode.INCONCLUSIVE) if interrupted else (0, exitcode.UNREADABLE)
            )
            if code not in nothing:
                return code
        if interrupted:
            return INTERRUPTED
        return exitcode.of_report(self.cases[-1].report) if self.cases else 0

    @property
    def verdict(self) -> Report | None:
        """The report to show: the first with a finding, else the last."""
        found = [case.report for case in self.cases if case.outcome.kind in _ENDS]
        return found[0] if found else (self.cases[-1].report if self.cases else None)


def summary(cases: list[Case]) -> list[str]:
    """After several attempts: faults, and how long each took."""
    from crashlab.postmortem.words import counted
    from crashlab.report.kinds import spoken

    ends = [case for case in cases if case.outcome.kind in _ENDS]
    lines = [f"{len(ends)} of {counted(len(cases), 'attempt')} ended in a failure"]
    for case in cases:
        steps = case.exposure.engine_steps
        after = f"{case.seconds:,.0f} s" + ("" if steps is None else f", {counted(steps, 'engine step')}")
        verdict = case.report.verdict
        lines.append(f"attempt {case.attempt}: {spoken(verdict.kind)} after {after}: {verdict.headline}")
    return lines


def _nothing() -> Exposure:
    from crashlab.soak.exposure import Exposure

    return Exposure()
