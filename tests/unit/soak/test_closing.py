"""The questions at a soak's end: a server that is gone by then came through nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from crashlab.cli.qualityclose import Closing
from crashlab.quality.attend import COMPLETE, INTERRUPTED, NEVER_READY, Attended
from crashlab.rundir.writer import RunWriter
from crashlab.soak.outcome import CLEAN, DIED, FAILING, Outcome
from crashlab.soak.servers import ServerView
from crashlab.soak.settings import SoakSettings


class Quiet:
    """A server that is only looked at."""

    def step(self, seconds: float) -> ServerView:
        return ServerView()

    def interrupted(self) -> bool:
        return False

    def take_evidence(self, reason: str) -> None:
        raise AssertionError

    def stop(self, reason: str) -> None:
        pass


@pytest.mark.parametrize(
    ("end", "place", "kind", "words"),
    [
        (NEVER_READY, None, DIED, "h:1 takes no connection any more, after the load"),
        (COMPLETE, None, DIED, "h:1 takes no connection any more, after the load"),
        (NEVER_READY, "h:1", FAILING, "after the load the server answered no question"),
        (COMPLETE, "h:1", CLEAN, "the budget is spent"),
        (INTERRUPTED, None, CLEAN, "the budget is spent"),
    ],
)
def test_a_server_that_cannot_be_asked_any_more_is_no_clean_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, place: str | None, kind: str, words: str
) -> None:
    monkeypatch.setattr(
        "crashlab.quality.attend.attend",
        lambda examiner, server: Attended(end, "never ready: nobody listens"),
    )
    monkeypatch.setattr("crashlab.quality.examiner.Examiner.stop", lambda self: None)
    monkeypatch.setattr("crashlab.cli.qualityclose.listens", lambda url: place)
    writer = RunWriter.create(str(tmp_path / "run"), ("soak",))
    closing = Closing(Quiet(), 20, SoakSettings("http://h:1"), writer, lambda text: None)
    closing.stop(CLEAN)
    outcome = closing.judged(Outcome(CLEAN, "the budget is spent"))
    writer.finish(exit_code=0)
    assert outcome.kind == kind
    assert words in outcome.why
    assert any(note.startswith("Asked at the end: ") for note in outcome.notes)
