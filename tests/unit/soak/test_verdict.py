"""What a soak's outcome makes of a report, and that an outcome survives its event."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab import facts
from crashlab.cli import exitcode
from crashlab.rundir.reader import Event
from crashlab.soak import outcome as kinds
from crashlab.soak.outcome import Outcome, from_fields
from crashlab.soak.verdict import settle, settle_recorded

HOST = facts.Host(facts.HostReported("EngineDeadError"))
CLASSIFIED = facts.SignatureMatch("X", "x", 0.7, "match", kind="classification")
CAUSE = facts.SignatureMatch("Y", "y", 0.9, "match", kind="cause")


def report(kind: str, headline: str = "Old words") -> facts.Report:
    return facts.Report(
        "crashlab.report/1",
        facts.Tool("crashlab", "0"),
        "now",
        (),
        facts.Verdict(kind, headline, confidence=facts.Confidence("high", ("old reason",))),
        host=HOST,
        signatures=(CLASSIFIED, CAUSE),
        readers={"native": facts.ReaderStatus("ok")} if kind == "gpu-fault" else {},
        provenance=("old note",),
    )


OUTCOME = Outcome(
    kinds.STALL,
    "16 requests in flight",
    {"hours": 0.5, "engine_steps": 1000},
    "30m 00s, 1,000 engine steps",
    {"in_flight": 16, "unanswered": 0, "shapes": {"fresh": 9}, "errors": {"reset": 2}},
    ("A note.",),
    ("!!!!",),
    True,
)


@pytest.mark.parametrize(
    ("outcome", "old", "kind", "code"),
    [
        (kinds.CLEAN, "no-fault", "no-fault", 0),
        (kinds.CLEAN, "inconclusive", "no-fault", 0),
        (kinds.INTERRUPTED, "no-fault", "no-fault", 0),
        (kinds.FAULT, "gpu-fault", "gpu-fault", 10),
        (kinds.STALL, "gpu-fault", "gpu-fault", 10),
        (kinds.GARBAGE, "gpu-fault", "gpu-fault", 10),
        (kinds.STALL, "hang", "stall", 12),
        (kinds.STALL, "no-fault", "stall", 12),
        (kinds.STALL, "inconclusive", "stall", 12),
        (kinds.GARBAGE, "no-fault", "garbage", 13),
        (kinds.NEVER_READY, "no-fault", "never-ready", 14),
        (kinds.NEVER_READY, "host-death", "never-ready", 14),
        (kinds.DIED, "no-fault", "host-death", 16),
        (kinds.DIED, "inconclusive", "host-death", 16),
        (kinds.FAULT, "inconclusive", "host-death", 16),
        (kinds.REFUSES, "no-fault", "inconclusive", 15),
        (kinds.LOAD_FAILED, "no-fault", "inconclusive", 15),
        (kinds.FAILING, "no-fault", "inconclusive", 15),
        (kinds.FAILING, "host-death", "inconclusive", 15),
        (kinds.FAILING, "gpu-fault", "gpu-fault", 10),
        (kinds.FAILING, "out-of-memory", "out-of-memory", 15),
        (kinds.DIED, "out-of-memory", "out-of-memory", 15),
        ("of another version", "no-fault", "no-fault", 0),
    ],
)
def test_each_outcome_gives_its_verdict_and_exit_code(outcome: str, old: str, kind: str, code: int) -> None:
    found = settle(report(old), OUTCOME._replace(kind=outcome))
    assert found.verdict.kind == kind
    assert exitcode.of_report(found) == code


def test_an_interrupt_before_any_load_is_no_absence_of_evidence() -> None:
    outcome = Outcome(kinds.INTERRUPTED, "interrupted before the server was ready")
    verdict = settle(report("no-fault"), outcome).verdict
    assert verdict.kind == "inconclusive"
    assert verdict.headline == "Interrupted before the server was ready: nothing was tested"
    assert verdict.confidence is not None
    assert "absence of evidence" not in " ".join(verdict.confidence.reasons)


@pytest.mark.parametrize("kind", [kinds.REFUSES, kinds.LOAD_FAILED])
def test_a_server_that_did_some_work_was_exercised(kind: str) -> None:
    nothing = "nothing was exercised"
    worked = settle(report("no-fault"), OUTCOME._replace(kind=kind)).verdict
    idle = settle(report("no-fault"), OUTCOME._replace(kind=kind, exposure={"tokens": 0})).verdict
    assert worked.does_not_mean
    assert nothing not in " ".join(worked.does_not_mean)
    assert nothing in " ".join(idle.does_not_mean)


def test_one_request_is_not_many() -> None:
    outcome = OUTCOME._replace(load={"in_flight": 1, "prompt_chars": 1})
    words = " ".join(settle(report("no-fault"), outcome).provenance)
    assert "1 request in flight, 1 prompt character in flight" in words


def test_exposure_load_notes_and_examples_stand_in_the_report() -> None:
    found = settle(report("no-fault"), OUTCOME._replace(kind=kinds.GARBAGE))
    assert found.run is not None
    assert found.run.exposure == {"hours": 0.5, "engine_steps": 1000}
    text = "\n".join(found.provenance)
    for words in (
        "1,000 engine steps",
        "16 requests in flight",
        "fresh 9",
        "reset 2",
        "A note.",
        "'!!!!'",
        "old note",
    ):
        assert words in text


def test_a_stall_with_a_hang_dump_keeps_where_the_gpu_was() -> None:
    found = settle(report("hang", "No GPU exception: spin_kernel was resident"), OUTCOME)
    assert "spin_kernel" in found.verdict.headline
    assert "16 requests in flight" in found.verdict.headline
    assert found.verdict.confidence is not None
    assert "old reason" in found.verdict.confidence.reasons


def test_what_a_server_prints_while_it_is_ended_blames_nobody() -> None:
    found = settle(report("no-fault"), OUTCOME)
    assert found.host is None
    assert found.signatures == (CAUSE,)


def test_what_a_server_prints_before_it_died_by_itself_is_kept() -> None:
    found = settle(report("no-fault"), OUTCOME._replace(kind=kinds.DIED, ours=False))
    assert found.host == HOST
    assert found.signatures == (CLASSIFIED, CAUSE)


@pytest.mark.parametrize("kind", [kinds.CLEAN, kinds.DIED, kinds.STALL, kinds.GARBAGE, kinds.NEVER_READY])
def test_every_verdict_says_what_it_does_not_mean(kind: str) -> None:
    assert settle(report("no-fault"), OUTCOME._replace(kind=kind)).verdict.does_not_mean


def test_a_recorded_outcome_settles_the_report_in_the_same_way_and_its_absence_changes_nothing() -> None:
    events = [Event("started", 0.0, None, {}), Event(kinds.EVENT, 1.0, None, OUTCOME.to_fields())]
    assert settle_recorded(report("hang"), events) == settle(report("hang"), OUTCOME)
    assert settle_recorded(report("hang"), events[:1]) == report("hang")


def test_an_outcome_survives_its_event() -> None:
    assert from_fields(json.loads(json.dumps(OUTCOME.to_fields()))) == OUTCOME


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(
            ["outcome", "why", "exposure", "load", "notes", "examples", "exposure_words", "ours"]
        ),
        st.none()
        | st.text(max_size=5)
        | st.integers()
        | st.lists(st.integers() | st.text(max_size=3), max_size=3)
        | st.dictionaries(st.text(max_size=5), st.none() | st.integers() | st.text(max_size=3), max_size=3),
    )
)
def test_odd_events_give_an_outcome_that_can_be_told_or_none(fields: dict[str, Any]) -> None:
    found = from_fields(fields)
    if found is not None:
        settle(report("no-fault"), found)
