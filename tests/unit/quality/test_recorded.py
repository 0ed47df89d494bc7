"""What a run directory recorded of its questions, told again by ``analyze``."""

from __future__ import annotations

import pytest

from crashlab import facts
from crashlab.quality.recorded import EVENT, settle_recorded
from crashlab.rundir.reader import Event


def report(kind: str) -> facts.Report:
    return facts.Report("s", facts.Tool("crashlab", "0"), "t", (), facts.Verdict(kind, "as it was"))


def asked(verdict: object, headline: object = "half of the answers are gone") -> list[Event]:
    return [
        Event("started", 1.0, None, {}),
        Event(EVENT, 2.0, None, {"verdict": verdict, "headline": headline}),
    ]


@pytest.mark.parametrize("kind", ["garbage", "degraded"])
@pytest.mark.parametrize("before", ["no-fault", "inconclusive"])
def test_wrong_answers_are_the_verdict_where_nothing_else_was_found(kind: str, before: str) -> None:
    verdict = settle_recorded(report(before), asked(kind)).verdict
    assert (verdict.kind, verdict.headline) == ("garbage", "half of the answers are gone")


@pytest.mark.parametrize("before", ["gpu-fault", "stall", "host-death"])
def test_a_fault_outranks_wrong_answers(before: str) -> None:
    found = settle_recorded(report(before), asked("garbage"))
    assert found.verdict.headline == "as it was"
    assert found.provenance == ("Exact questions were asked: half of the answers are gone",)


@pytest.mark.parametrize("kind", ["no-difference-shown", "nothing-found", "inconclusive"])
def test_a_good_result_is_a_note(kind: str) -> None:
    found = settle_recorded(report("no-fault"), asked(kind))
    assert found.verdict.kind == "no-fault"
    assert len(found.provenance) == 1


@pytest.mark.parametrize("events", [[], asked(None), asked("garbage", None), asked(5, ["x"])])
def test_nothing_or_nonsense_changes_nothing(events: list[Event]) -> None:
    assert settle_recorded(report("no-fault"), events) == report("no-fault")
