"""The hypotheses of an entry, each with what speaks for it, against it, and what was not captured."""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

from typing import NamedTuple

from crashlab.facts import Hypothesis
from crashlab.signatures import sentences
from crashlab.signatures.capture_hints import hint
from crashlab.signatures.criteria import KEYS, Answer, Criterion, ask, ask_all
from crashlab.signatures.entry import Clause, Entry, Theory
from crashlab.signatures.judge import Fit
from crashlab.signatures.observed import Observed

_MAX_SENTENCES = 24


class Argument(NamedTuple):
    """One theory weighed. ``share`` is the weight for over all weight, 0 to 1; ``own`` marks the entry's
    own theory, the first in its file."""

    hypothesis: Hypothesis
    share: float
    balance: float
    ruled_out: bool
    own: bool = False


def argue(entry: Entry, fit: Fit, seen: Observed) -> tuple[Argument, ...]:
    """Every theory of ``entry``, best supported first; the first theory also gets the picture's facts."""
    # A classification's facts stand with its reading, so its theories get none of them.
    own = fit if entry.reads_as is None else None
    made = [
        _weigh(theory, own if position == 0 else None, seen)._replace(own=position == 0)
        for position, theory in enumerate(entry.theories)
    ]
    made.sort(key=lambda argument: (argument.ruled_out, -argument.balance))
    best = made[0].balance if made else 0.0
    return tuple(_worded(argument, argument.balance >= best) for argument in made)


def reading(reads_as: str, fit: Fit, seen: Observed) -> Hypothesis:
    """How a classification or symptom changes the reading of the verdict, in the shape of a hypothesis."""
    return Hypothesis(
        cause=f"reads as: {reads_as}",
        supporting=_unique([sentences.holds(item, seen) for item in fit.holds]),
        against=_unique([sentences.contradicts(item, seen) for item in fit.contradicted]),
        unknown=_unique([hint(item.key, item.sub) for item in fit.unknown]),
    )


def _weigh(theory: Theory, fit: Fit | None, seen: Observed) -> Argument:
    supporting: list[str] = []
    against: list[str] = []
    unknown: list[str] = []
    weight_for, weight_unknown = _clauses(theory.supporting, seen, supporting, unknown)
    weight_against, _ = _clauses(theory.against, seen, against, unknown)
    ruled_out = any(clause.decisive and _fires(clause, seen) is True for clause in theory.against)
    total = weight_for + weight_against + weight_unknown
    share = weight_for / total if total else 0.0
    balance = (weight_for - weight_against) / total if total else 0.0
    if fit is not None:
        supporting = [sentences.holds(item, seen) for item in fit.holds] + supporting
        against = [sentences.contradicts(item, seen) for item in fit.contradicted] + against
        unknown = (
            [hint(item.key, item.sub) for item in fit.unknown]
            + [sentences.outside(item, seen) for item in fit.outside]
            + unknown
        )
        seen_weight = sum(KEYS[item.key].weight for item in fit.holds)
        lost_weight = sum(KEYS[item.key].weight for item in fit.contradicted)
        open_weight = sum(KEYS[item.key].weight for item in (*fit.unknown, *fit.outside))
        balance = (weight_for + seen_weight - weight_against - lost_weight) / (
            total + seen_weight + lost_weight + open_weight
        )
        ruled_out = ruled_out or bool(fit.contradicted)
    hypothesis = Hypothesis(theory.cause, _unique(supporting), _unique(against), _unique(unknown))
    return Argument(hypothesis, share, balance, ruled_out)


def _clauses(
    clauses: tuple[Clause, ...], seen: Observed, said: list[str], unknown: list[str]
) -> tuple[int, int]:
    """Fill ``said`` and ``unknown``; give the weights of what fired and of what is open."""
    fired = still_open = 0
    for clause in clauses:
        answer = _fires(clause, seen)
        if answer is True:
            said.append(sentences.fill(clause.says, seen))
            fired += clause.weight
        elif answer is None:
            still_open += clause.weight
            unknown.extend(hint(item.key, item.sub) for item in _missing(clause, seen))
    return fired, still_open


def _fires(clause: Clause, seen: Observed) -> Answer:
    answer = ask_all(clause.when, seen)
    if answer is False or not clause.unless:
        return answer
    barred = ask_all(clause.unless, seen)
    if barred is True:
        return False
    return None if barred is None else answer


def _missing(clause: Clause, seen: Observed) -> list[Criterion]:
    return [item for item in (*clause.when, *clause.unless) if ask(item, seen) is None]


def _worded(argument: Argument, leads: bool) -> Argument:
    """Put the standing in front of the cause: the catalogue never says "is"."""
    if argument.ruled_out:
        standing = "contradicted by what was seen: "
    elif not argument.hypothesis.supporting and not argument.hypothesis.against:
        standing = "not excluded: "
    elif leads and argument.balance > 0:
        standing = "consistent with "
    else:
        standing = "less consistent with "
    return argument._replace(
        hypothesis=argument.hypothesis._replace(cause=standing + argument.hypothesis.cause)
    )


def _unique(items: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(items))[:_MAX_SENTENCES]
