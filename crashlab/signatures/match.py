"""Hold a crash against the catalogue: which known failures it is consistent with, and why.

Nothing here says that a crash *is* a known failure. See :mod:`~crashlab.signatures.judge` for the
score and :mod:`~crashlab.signatures.argue` for the hypotheses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crashlab.facts import EnvFact, Report, Run, SignatureMatch, Verdict
from crashlab.signatures import judge
from crashlab.signatures.entry import CAUSE, KINDS, Card, Entry
from crashlab.signatures.gather import gather
from crashlab.signatures.observed import Observed

if TYPE_CHECKING:
    from crashlab.signatures.argue import Argument

MATCH = "match"
POSSIBLE = "possible"
CONTRADICTED = "contradicted"
_RANKS = {MATCH: 0, POSSIBLE: 1, CONTRADICTED: 2}
MAX_RESULTS = 20


def match(
    report: Report | Verdict | Mapping[str, Any] | None,
    *,
    env: Mapping[str, EnvFact] | None = None,
    log: Iterable[str] = (),
    run: Run | Mapping[str, EnvFact | str] | None = None,
    entries: Sequence[Entry | Card] | None = None,
) -> tuple[SignatureMatch, ...]:
    """Known failures that fit ``report`` (a Report, a Verdict, a parsed report.json, or None).

    ``env`` are environment facts (software versions, GPU); facts of the report and of the log's own
    text fill what it does not say. ``log`` are lines of server, driver or kernel logs. ``run`` is
    the run record or its settings by name ("kv_cache_dtype", "cuda_graph", "garbage"). ``entries``
    defaults to the bundled catalogue; ``catalogue.packed()`` adds the user's own. Best first: matches,
    then possible, then contradicted. Raises BadEntry if a catalogue cannot be loaded.
    """
    if entries is None:
        from crashlab.signatures.catalogue import cards

        entries = cards()
    return match_observed(gather(report, env=env, log=log, run=run), entries)


def match_observed(seen: Observed, entries: Sequence[Entry | Card]) -> tuple[SignatureMatch, ...]:
    """The same for facts that are already flat."""
    found: list[tuple[tuple[int, int, float, str], SignatureMatch]] = []
    for entry in entries:
        result = match_entry(entry, seen)
        if result is not None:
            rank = (_RANKS[result.status], KINDS.index(entry.kind), -result.score, entry.id)
            found.append((rank, result))
    found.sort(key=lambda item: item[0])
    return tuple(result for _, result in found[:MAX_RESULTS])


def match_entry(card: Entry | Card, seen: Observed) -> SignatureMatch | None:
    """One entry held against one crash; None when no picture of it fits."""
    best: judge.Fit | None = None
    for picture in card.pictures:
        fit = judge.judge(picture, seen)
        if fit is not None and (best is None or _better(fit, best)):
            best = fit
    if best is None:
        return None
    from crashlab.signatures import argue

    entry = card.full()
    arguments = argue.argue(entry, best, seen)
    score = best.base
    if entry.reads_as is None and any(theory.supporting or theory.against for theory in entry.theories):
        score = 0.85 * best.base + 0.15 * next(argument.share for argument in arguments if argument.own)
    if best.names_only and entry.kind == CAUSE:
        score = min(score, judge.NAME_ALONE)
    if best.class_only and entry.kind == CAUSE:
        score = min(score, judge.CLASS_ALONE)
    if score < judge.FLOOR:
        return None
    ruled_out = bool(best.contradicted) or any(argument.own and argument.ruled_out for argument in arguments)
    status = MATCH if score >= judge.MATCH_AT else POSSIBLE
    if ruled_out:
        status, score = CONTRADICTED, score * judge.CONTRADICTED
    return _result(entry, best, arguments, status, score, seen)


def _better(fit: judge.Fit, other: judge.Fit) -> bool:
    return (not fit.contradicted, fit.base) > (not other.contradicted, other.base)


def _result(
    entry: Entry,
    fit: judge.Fit,
    arguments: tuple[Argument, ...],
    status: str,
    score: float,
    seen: Observed,
) -> SignatureMatch:
    hypotheses = tuple(argument.hypothesis for argument in arguments)
    if entry.reads_as is not None:
        from crashlab.signatures.argue import reading

        hypotheses = (reading(entry.reads_as, fit, seen), *hypotheses)
    fix = (*entry.fix, *(f"workaround: {text}" for text in entry.workaround))
    return SignatureMatch(
        id=entry.id,
        title=entry.title,
        score=round(score, 3),
        status=status,
        hypotheses=hypotheses,
        fix=() if status == CONTRADICTED else fix,
        references=entry.references,
        discriminating_tests=tuple(dict.fromkeys(test for theory in entry.theories for test in theory.tests)),
        kind=entry.kind,
        reads_as=entry.reads_as,
        confidence=entry.confidence,
    )
