"""What a soak's outcome makes of the report on its evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from crashlab import facts
from crashlab.rundir.reader import Event
from crashlab.soak.outcome import (
    CLEAN,
    DIED,
    EVENT,
    FAULT,
    GARBAGE,
    INTERRUPTED,
    LOAD_FAILED,
    NEVER_READY,
    REFUSES,
    STALL,
    Outcome,
    from_fields,
)

_FAULTS = ("gpu-fault", "device-assert", "trap")
_OPEN = ("inconclusive", "no-fault", "unreadable", "host-death", "stall", "never-ready")


def settle(report: facts.Report, outcome: Outcome) -> facts.Report:
    """The report of the evidence with what the soak saw: kind of verdict, exposure, load, notes.

    A GPU fault in the evidence stays the verdict whatever the soak saw: a stalled or dead server may
    be its consequence.
    """
    verdict = report.verdict
    if verdict.kind not in _FAULTS:
        verdict = _verdict(verdict, outcome)
        if outcome.ours:
            # What a server prints while it is being ended explains nothing, and without a stall a
            # line about a wait is only noise.
            kept = ("cause", "symptom") if outcome.kind == STALL else ("cause",)
            rest = tuple(one for one in report.signatures if one.kind in kept)
            report = report._replace(host=None, signatures=rest)
    notes = list(outcome.notes)
    if outcome.load:
        notes.insert(0, _load_words(outcome.load))
    if outcome.exposure_words:
        notes.insert(0, f"Under load: {outcome.exposure_words}.")
    notes += [f"Example of a bad answer: {example!r}" for example in outcome.examples]
    run = report.run if report.run is not None else facts.Run()
    exposure = {**(run.exposure or {}), **outcome.exposure}
    return report._replace(
        verdict=verdict,
        run=run._replace(exposure=exposure or None, outcome=verdict.kind),
        provenance=(*notes, *report.provenance),
    )


def settle_recorded(report: facts.Report, events: Iterable[Event]) -> facts.Report:
    """The same from the events of an attempt of a run directory; unchanged if it was no soak."""
    found = [outcome for event in events if event.kind == EVENT and (outcome := from_fields(event.fields))]
    return settle(report, found[-1]) if found else report


def _verdict(old: facts.Verdict, outcome: Outcome) -> facts.Verdict:
    make = {
        STALL: _stall,
        GARBAGE: _garbage,
        NEVER_READY: _never_ready,
        DIED: _died,
        FAULT: _died,
        CLEAN: _clean,
        INTERRUPTED: _clean,
        REFUSES: _refuses,
        LOAD_FAILED: _refuses,
    }.get(outcome.kind)
    return old if make is None else make(old, outcome)


def _stall(old: facts.Verdict, outcome: Outcome) -> facts.Verdict:
    """A hang dump says where the GPU stood; without one the host stacks must tell."""
    seen = "the soak saw no progress by any signal"
    if old.kind == "hang":
        level = old.confidence.level if old.confidence is not None else "medium"
        reasons = old.confidence.reasons if old.confidence is not None else ()
        return old._replace(
            kind="stall",
            headline=f"The server stalled: {outcome.why}. {old.headline}",
            confidence=facts.Confidence(level, (seen, *reasons)),
        )
    if old.kind == "no-fault":
        where = "the GPU dump shows no kernel at work: the host waits, see the host stacks"
    else:
        where = "no GPU dump could be taken"
    return facts.Verdict(
        "stall",
        f"The server stalled: {outcome.why}; {where}",
        confidence=facts.Confidence("medium", (seen,)),
        does_not_mean=(
            "It does not mean that the GPU hung: the host may have waited for something else.",
            "It does not mean that the server would never have gone on.",
        ),
    )


def _garbage(old: facts.Verdict, outcome: Outcome) -> facts.Verdict:
    return facts.Verdict(
        "garbage",
        f"The server answers garbage: {outcome.why}",
        confidence=facts.Confidence("high" if outcome.examples else "medium", ("answers as received",)),
        does_not_mean=(
            "It does not say which kernel computed wrong values: nothing faulted.",
            "It does not mean that earlier answers were right: only their form was looked at.",
        ),
    )


def _never_ready(old: facts.Verdict, outcome: Outcome) -> facts.Verdict:
    return facts.Verdict(
        "never-ready",
        f"The server never became ready: {outcome.why}",
        confidence=facts.Confidence("high", ("no one-token request was ever answered",)),
        does_not_mean=("It says nothing about faults under load: there was none.",),
    )


def _died(old: facts.Verdict, outcome: Outcome) -> facts.Verdict:
    if old.kind not in _OPEN:
        return old
    reasons = ("the server ended while requests were sent", "no dump and no error line of a GPU fault")
    return facts.Verdict(
        "host-death",
        f"The server died under load: {outcome.why}; nothing tells of a GPU fault",
        confidence=facts.Confidence("medium", reasons),
        does_not_mean=("It does not mean that nothing failed on the GPU: no dump was written.",),
    )


def _clean(old: facts.Verdict, outcome: Outcome) -> facts.Verdict:
    if old.kind not in _OPEN:
        return old
    return facts.Verdict(
        "no-fault",
        f"Nothing was found: {outcome.why}",
        confidence=facts.Confidence("low", ("absence of evidence under one load on one machine",)),
        does_not_mean=(
            "It does not mean that the server is free of faults: a rare one needs more exposure or "
            "another shape.",
            "It does not mean that the answers were right: only their form was looked at.",
        ),
    )


def _refuses(old: facts.Verdict, outcome: Outcome) -> facts.Verdict:
    return facts.Verdict(
        "inconclusive",
        f"No load could be put on the server: {outcome.why}",
        confidence=facts.Confidence("high", ("every request failed in the same way",)),
        does_not_mean=("It says nothing about faults: nothing was exercised.",),
    )


_LOAD_WORDS = (
    ("in_flight", "requests in flight"),
    ("unanswered", "of them without a first byte"),
    ("prompt_chars", "prompt characters in flight"),
    ("running", "running by the server's count"),
    ("waiting", "waiting there"),
)


def _load_words(load: Mapping[str, Any]) -> str:
    parts = []
    for name, word in _LOAD_WORDS:
        value = load.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            parts.append(f"{value:,.0f} {word}")
    for name, word in (("shapes", "last shapes"), ("errors", "ends so far")):
        counts = load.get(name)
        if isinstance(counts, dict) and counts:
            parts.append(f"{word}: " + ", ".join(f"{key} {count}" for key, count in counts.items()))
    return f"The load at that moment: {', '.join(parts)}."
