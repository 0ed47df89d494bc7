"""How well one entry's picture fits: the score.

``coverage`` is the weight of the questions answered True over the weight of all questions of the
picture (a missing fact is unknown, not for). ``T / (T + 3)`` with T the weight answered True keeps
a picture of one weak question from scoring like one of many. Their product is the *base*; the
score is 0.85 · base + 0.15 · argument, where the argument is the share of evidence for the entry's
own hypothesis (see :mod:`~crashlab.signatures.argue`); without any clause the score is the base.
"""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

from typing import NamedTuple

from crashlab.signatures.criteria import KEYS, Answer, Criterion
from crashlab.signatures.entry import Picture
from crashlab.signatures.observed import Observed

MATCH_AT = 0.6
"""A score from here on is called a match, below it possible."""
FLOOR = 0.25
"""Below this nothing is said: too little was seen."""
MIN_COVERAGE = 0.5
NAME_ALONE = 0.3
"""Cap of a cause's score that rests on names alone: a kernel's name is never a cause."""
CLASS_ALONE = 0.55
"""Cap of a cause's score that rests on the class of the crash alone: it names no code, no version, no log line,
so any crash of that class would score the same. It stays below :data:`MATCH_AT`."""
CONTRADICTED = 0.2
"""A contradicted entry keeps this share of its score."""
_HALF = 3.0
_NAMES = frozenset(("kernel", "library", "family", "arch", "affected", "seen"))
# What tells one bug from others of its class: code, versions, words, settings, an address's size.
_IDENTITY = frozenset(
    ("kernel", "function", "library", "family", "affected", "seen", "log", "log_all", "run", "garbage", "hang",
     "address_below", "address_from", "opcode", "pc_in_image")
)  # fmt: skip
# Circumstances: known and other than asked they contradict (or, for "seen", only do not support).
_SOFT = frozenset(name for name, key in KEYS.items() if key.circumstance or name == "seen")
# Questions that many crashes answer with yes: alone they count only when the picture is complete.
_GENERIC = _SOFT | {"exception", "error", "arch", "verdict", "precision", "access", "width", "space"}
_MUST_BE_KNOWN = frozenset(("log", "log_all", "garbage"))


class Fit(NamedTuple):
    """The answers of one picture.

    ``base`` is 0 to 1; ``contradicted`` holds circumstances that fail; ``outside`` versions that
    nobody reported; ``names_only`` says that nothing but names, architecture and versions held, ``class_only``
    that nothing did but what many bugs share.
    """

    base: float
    holds: tuple[Criterion, ...]
    unknown: tuple[Criterion, ...]
    contradicted: tuple[Criterion, ...]
    outside: tuple[Criterion, ...]
    names_only: bool = False
    class_only: bool = False


def judge(picture: Picture, seen: Observed) -> Fit | None:
    """Hold ``picture`` against what was seen; None when it does not fit or too little was captured.

    A picture falls with the first question known to be False, except for circumstances (affected
    versions, CUDA graphs): those contradict, which is worth saying. A version outside ``seen`` is
    neither: nobody has said that it is fixed.
    """
    answers: list[Answer] = []
    for criterion in picture.criteria:
        key = criterion.key
        answer = KEYS[key].answer(criterion, seen)
        if answer is False:
            if key not in _SOFT:
                return None
        elif answer is None and (key in _MUST_BE_KNOWN or key in picture.require):
            return None
        answers.append(answer)
    return _fit(picture.criteria, answers)


def _fit(criteria: tuple[Criterion, ...], answers: list[Answer]) -> Fit | None:
    told = list(zip(criteria, answers, strict=True))
    holds = tuple(criterion for criterion, answer in told if answer is True)
    unknown = tuple(criterion for criterion, answer in told if answer is None)
    fails = tuple(criterion for criterion, answer in told if answer is False)
    facts = _weight(holds, of_facts=True)
    if not facts or facts < MIN_COVERAGE * (facts + _weight(unknown, of_facts=True)):
        return None
    generic = all(criterion.key in _GENERIC for criterion in holds)
    if generic and any(criterion.key not in _SOFT for criterion in unknown):
        return None
    weight = _weight(holds)
    base = weight / _weight(criteria) * weight / (weight + _HALF)
    return Fit(
        base,
        holds,
        unknown,
        contradicted=tuple(criterion for criterion in fails if criterion.key != "seen"),
        outside=tuple(criterion for criterion in fails if criterion.key == "seen"),
        names_only=all(criterion.key in _NAMES for criterion in holds),
        class_only=not any(criterion.key in _IDENTITY for criterion in holds),
    )


def _weight(criteria: tuple[Criterion, ...], *, of_facts: bool = False) -> int:
    """The sum of weights; ``of_facts`` leaves versions and other circumstances out."""
    return sum(KEYS[item.key].weight for item in criteria if not (of_facts and item.key in _SOFT))
