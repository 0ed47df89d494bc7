"""What a soak's outcome makes of the report on its evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from crashlab import facts
from crashlab.rundir.reader import Event
from crashlab.soak.outcome import (
    CLEAN,
    DIED,
    EVENT,
    FAILING,
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
    notes += [f"Example of a bad answer: {example!r}" for example in dict.fromkeys(outcome.examples)]
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


class _Rule(NamedTuple):
    """What an outcome makes of an open verdict. ``headline`` ends with why it ended, at ``{why}``."""

    kind: str
    headline: str
    level: str
    reasons: tuple[str, ...]
    does_not_mean: tuple[str, ...]


_DIED = _Rule(
    "host-death",
    "The server died under load: {why}; nothing tells of a GPU fault",
    "medium",
    (
        "the server ended, or stopped answering, while requests were sent",
        "no dump and no error line of a GPU fault",
    ),
    ("It does not mean that nothing failed on the GPU: no dump was written.",),
)
_NOTHING = _Rule(
    "no-fault",
    "Nothing was found: {why}",
    "low",
    ("absence of evidence under one load on one machine",),
    (
        "It does not mean that the server is free of faults: a rare one needs more exposure or another shape.",
        "It does not mean that the answers were right: only their form was looked at.",
    ),
)
_UNTESTED = _Rule(
    "inconclusive",
    "Interrupted before the server was ready: nothing was tested",
    "high",
    ("no request was ever answered",),
    ("It says nothing about faults: nothing was exercised.",),
)
_NO_LOAD = _Rule(
    "inconclusive",
    "No load could be put on the server: {why}",
    "high",
    ("no request succeeded",),
    ("It says nothing about faults: nothing was exercised.",),
)
_FAILING = _Rule(
    "inconclusive",
    "Inconclusive: {why}",
    "high",
    ("the server took connections, and answered errors instead of text",),
    (
        "It does not mean that nothing is wrong: why the requests failed stands in the server's own log.",
        "It does not mean that the server died: it still took connections.",
    ),
)
_EXERCISED = ("It says nothing about what the server does under a load that it answers.",)
_RULES = {
    STALL: _Rule(
        "stall",
        "The server stalled: {why}",
        "medium",
        ("the soak saw no progress by any signal",),
        (
            "It does not mean that the GPU hung: the host may have waited for something else.",
            "It does not mean that the server would never have gone on.",
        ),
    ),
    GARBAGE: _Rule(
        "garbage",
        "The server answers garbage: {why}",
        "high",
        ("answers as received",),
        (
            "It does not say which kernel computed wrong values: nothing faulted.",
            "It does not mean that earlier answers were right: only their form was looked at.",
        ),
    ),
    NEVER_READY: _Rule(
        "never-ready",
        "The server never became ready: {why}",
        "high",
        ("no one-token request was ever answered",),
        ("It says nothing about faults under load: there was none.",),
    ),
    DIED: _DIED,
    FAULT: _DIED,
    CLEAN: _NOTHING,
    INTERRUPTED: _NOTHING,
    REFUSES: _NO_LOAD,
    LOAD_FAILED: _NO_LOAD,
    FAILING: _FAILING,
}
_YIELDS = (DIED, FAULT, CLEAN, INTERRUPTED, FAILING)
"""Outcomes that explain less than a verdict of the evidence does, such as out of memory."""


def _verdict(old: facts.Verdict, outcome: Outcome) -> facts.Verdict:
    rule = _RULES.get(outcome.kind)
    if outcome.kind == INTERRUPTED and not outcome.exposure_words:
        rule = _UNTESTED
    if rule is None or (outcome.kind in _YIELDS and old.kind not in _OPEN):
        return old
    headline, level, limits = rule.headline.format(why=outcome.why), rule.level, rule.does_not_mean
    if rule is _NO_LOAD and any(outcome.exposure.get(name) for name in ("tokens", "engine_steps")):
        limits = _EXERCISED
    if outcome.kind == STALL:
        if old.kind == "hang":
            return _stall_of_hang(old, headline, rule.reasons)
        headline += f"; {_GPU_AT_STALL.get(old.kind, 'no GPU dump could be taken')}"
    elif outcome.kind == GARBAGE and not outcome.examples:
        level = "medium"
    return facts.Verdict(
        rule.kind,
        headline,
        confidence=facts.Confidence(level, rule.reasons),
        does_not_mean=limits,
    )


_GPU_AT_STALL = {"no-fault": "the GPU dump shows no kernel at work: the host waits, see the host stacks"}


def _stall_of_hang(old: facts.Verdict, headline: str, seen: tuple[str, ...]) -> facts.Verdict:
    """The hang dump says where the GPU stood; its own confidence stays."""
    level = old.confidence.level if old.confidence is not None else "medium"
    reasons = old.confidence.reasons if old.confidence is not None else ()
    return old._replace(
        kind="stall",
        headline=f"{headline}. {old.headline}",
        confidence=facts.Confidence(level, (*seen, *reasons)),
    )


_LOAD_WORDS = (
    ("in_flight", "request in flight", "requests in flight"),
    ("unanswered", "of them without a first byte", "of them without a first byte"),
    ("prompt_chars", "prompt character in flight", "prompt characters in flight"),
    ("running", "running by the server's count", "running by the server's count"),
    ("waiting", "waiting there", "waiting there"),
)


def _load_words(load: Mapping[str, Any]) -> str:
    parts = []
    for name, one, many in _LOAD_WORDS:
        value = load.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            parts.append(f"{value:,.0f} {one if value == 1 else many}")
    for name, word in (("shapes", "last shapes"), ("errors", "ends so far")):
        counts = load.get(name)
        if isinstance(counts, dict) and counts:
            parts.append(f"{word}: " + ", ".join(f"{key} {count}" for key, count in counts.items()))
    return f"The load at that moment: {', '.join(parts)}."
