"""The closing step of a soak: the server that survived is asked whether it still talks sense."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from crashlab.postmortem.words import counted
from crashlab.soak.outcome import CLEAN, DIED, FAILING, FAULT, GARBAGE, Outcome
from crashlab.soak.serverurl import listens, place_of

if TYPE_CHECKING:
    from crashlab.quality.attend import Attended
    from crashlab.quality.facts import QualityReport
    from crashlab.rundir.writer import RunWriter
    from crashlab.soak.servers import ServerHandle, ServerView
    from crashlab.soak.settings import SoakSettings

_MOST = 16


class Closing:
    """A server handle that asks ``questions`` (0: none) before it stops a server that came through.

    ``report`` is there afterwards. One arm alone: the two passes must agree, and the answers must not
    be degenerate; how right they should be, a soak cannot know.
    """

    def __init__(
        self,
        server: ServerHandle,
        questions: int,
        settings: SoakSettings,
        writer: RunWriter,
        say: Callable[[str], None],
    ) -> None:
        self.report: QualityReport | None = None
        self._server, self._questions, self._settings = server, questions, settings
        self._writer, self._say = writer, say
        self._died: Attended | None = None
        self._lost: Outcome | None = None

    def step(self, seconds: float) -> ServerView:
        """As the server does."""
        return self._server.step(seconds)

    def interrupted(self) -> bool:
        """As the server does."""
        return self._server.interrupted()

    def take_evidence(self, reason: str) -> None:
        """As the server does."""
        self._server.take_evidence(reason)

    def stop(self, reason: str) -> None:
        """Ask, if the soak found nothing, then stop."""
        if self._questions and reason == CLEAN:
            self._ask()
        self._server.stop(reason)

    def judged(self, outcome: Outcome) -> Outcome:
        """The soak's outcome with what the answers say: garbage outranks a clean soak."""
        report = self.report
        if report is None:
            return outcome
        verdict = report.verdict
        note = f"Asked at the end: {verdict.headline}. See quality.txt in the run directory."
        outcome = outcome._replace(notes=(*outcome.notes, note))
        if self._died is not None:
            kind = FAULT if self._died.faults else DIED
            return outcome._replace(kind=kind, why=f"{self._died.why}, after the load", ours=False)
        if outcome.kind == CLEAN and self._lost is not None:
            return outcome._replace(kind=self._lost.kind, why=self._lost.why)
        if outcome.kind != CLEAN or verdict.kind not in ("garbage", "degraded"):
            return outcome
        examples = tuple(e.answer for e in report.arms[0].passes[-1].examples)
        why = verdict.headline.partition(": ")[2] or verdict.headline  # the soak says the rest itself
        return outcome._replace(kind=GARBAGE, why=why, examples=examples)

    def _ask(self) -> None:
        from crashlab.quality.attend import attend
        from crashlab.quality.build import Heard, build_report
        from crashlab.quality.examiner import Examiner
        from crashlab.quality.generate import build_suite
        from crashlab.quality.recorded import EVENT
        from crashlab.quality.settings import Arm, Settings
        from crashlab.report.quality import render
        from crashlab.rundir.journal import Journal

        soak, writer = self._settings, self._writer
        self._say(f"asking {counted(self._questions, 'question')}, twice")
        settings = Settings(
            build_suite(soak.seed, self._questions),
            soak.seed,
            min(_MOST, soak.clients),
            ladder=False,
            alone=True,
            ready_within=60.0,
            extra=soak.extra,
        )
        journal = Journal(writer.file("answers.jsonl"))
        arm = Arm("A", soak.url, soak.model, soak.key)
        examiner = Examiner(arm, settings, journal.append, say=self._say, folder=writer.path)
        try:
            attended = attend(examiner, self._server)
        finally:
            examiner.stop()
            journal.close()
        talk = examiner.talk
        if attended.why is not None:
            talk = talk._replace(problem=attended.why)
        if attended.end == "died":
            self._died = attended
        self.report = build_report(settings, [Heard(arm, talk)])
        if attended.end != "interrupted" and self.report.verdict.kind == "inconclusive":
            self._lost = _lost(soak.url, attended.end == "never-ready", self.report.verdict.headline)
        for form, name in (("json", "quality.json"), ("text", "quality.txt")):
            writer.write_file(name, render(self.report, form, verbose=True))
        verdict = self.report.verdict
        writer.event(EVENT, verdict=verdict.kind, headline=verdict.headline)
        self._say(verdict.headline)


def _lost(url: str, unasked: bool, headline: str) -> Outcome | None:
    """Few or no answers: a server that has gone by now came through nothing."""
    if not listens(url):
        return Outcome(DIED, f"{place_of(url)} takes no connection any more, after the load")
    return (
        Outcome(FAILING, f"after the load the server answered no question: {headline}") if unasked else None
    )
