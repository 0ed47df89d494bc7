"""The verdict: garbage, degraded, no difference shown, or inconclusive. Never "equal", never "fine".

Four families of tests share the level ``alpha`` in quarters (Bonferroni): exact McNemar on right answers
(two-sided), Fisher on degenerate answers, Fisher on the right answers at each step of the ladder (each step
and direction at its part of the quarter), and a sign test on how likely each arm thinks the right answers,
where servers tell. The last one also asks for size: quantised weights are less sure by themselves, by
hundredths of a nat a token. "Garbage" asks for size on top: half of the right answers gone, or a fifth of
all answers degenerate.
"""

from __future__ import annotations

import collections

from crashlab.quality.degenerate import garbage_kinds
from crashlab.quality.facts import (
    DEGRADED,
    GARBAGE,
    INCONCLUSIVE,
    NO_DIFFERENCE,
    NOTHING_FOUND,
    ArmFacts,
    Collapse,
    Comparison,
    PassFacts,
    Power,
    StepTest,
    Verdict,
)
from crashlab.quality.onset import CONCURRENCY, Onset
from crashlab.stats.paired import mcnemar
from crashlab.stats.proportions import binomial_at_most, clopper_pearson, fisher_more

ENOUGH = 20
PARTS = 4
LESS_SURE = 0.1
"""Nats a token: a smaller fall of how likely right answers are thought does not count."""
_MOST_ERRORS = 0.5
_FIFTH = 0.2
_HARDLY = 0.1
_APART = 1e-4
_EXACT = ("It does not say which kernel computed wrong values: nothing faulted.",)
_NOT_EQUAL = (
    "It does not mean that the arms are equal: a smaller difference than this run could show may exist.",
    "It speaks of these questions only, at this prompt length and load.",
)


def judge_two(
    arms: tuple[ArmFacts, ...],
    floor: Comparison | None,
    pair: Comparison,
    odd: Collapse | None,
    power: Power | None,
    steps: tuple[StepTest, ...],
    alpha: float,
) -> Verdict:
    """Two arms that were asked the same questions."""
    part = alpha / PARTS
    blocked = _blocked(arms, pair, floor, part)
    if blocked is not None:
        return blocked
    broken = _corrupted(arms)
    if broken is not None:
        return broken
    worse = _worse_by_answers(pair, floor, part)
    collapsed = odd if odd is not None and odd.p <= part / 2 else None
    if collapsed is not None and (worse is None or worse == collapsed.worse):
        return _bad(arms, pair, collapsed, collapsed.worse, by_answers=worse is not None)
    if worse is not None:
        return _bad(arms, pair, None, worse, by_answers=True)
    failed = [step for step in steps if step.p <= part / (2 * len(steps))]
    if failed:
        first = min(failed, key=lambda step: (step.dimension, step.at))
        worse_arm = next(arm for arm in arms if arm.name == first.worse)
        onset = next((one for one in worse_arm.onsets if one.dimension == first.dimension), None)
        return _bad_somewhere(pair, first, onset)
    unsure = _less_sure(arms, pair, part)
    if unsure is not None:
        return unsure
    reasons = [_pair_words(pair)]
    if power is not None:
        reasons.append(power.words)
    if odd is not None:
        reasons.append(_suspicion(odd, part / 2))
    headline = (
        f"No difference between A and B shown in {pair.pairs.total:,} paired questions "
        f"({_right(arms[0])} and {_right(arms[1])} right{_errors_words(arms)})"
    )
    if not pair.pairs.total:
        headline = f"No difference in the look of {arms[1].passes[-1].looked_at:,} answers of A and B shown"
    elif all(_hardly_right(arm.passes[-1]) for arm in arms):
        headline += "; almost nothing is right in either, so that a difference could hardly show"
    headline += _apart_words(pair, floor)
    return Verdict(NO_DIFFERENCE, headline, reasons=tuple(reasons), does_not_mean=_NOT_EQUAL)


def judge_one(arm: ArmFacts, floor: Comparison | None, expect: float | None, alpha: float) -> Verdict:
    """One server without a control arm: only degenerate answers, or a known share of right ones, can tell."""
    last = arm.passes[-1] if arm.passes else None
    if last is None or _few(last):
        return _too_few(arm, last)
    if floor is not None and floor.p <= alpha / PARTS:
        return _unstable(floor)
    broken = _corrupted((arm,))
    if broken is not None:
        return broken
    counts = last.counts
    kinds = _kinds(last)
    limits = clopper_pearson(last.odd_answers, last.looked_at, alpha / PARTS)
    reasons = [f"{last.odd_answers} of {last.looked_at} answers look degenerate: {_odd_words(last)}"]
    if limits.low >= _FIFTH / 2 and last.odd_answers >= _FIFTH * last.looked_at:
        share = f"{last.odd_answers} of {last.looked_at} answers"
        headline = f"The server answers garbage: {share} are degenerate ({_odd_words(last)})"
        return Verdict(GARBAGE, headline, arm.name, kinds, tuple(reasons), _ALONE)
    if expect is not None and counts.answered:
        p = binomial_at_most(counts.correct, counts.answered, expect)
        seen = f"{counts.correct} of {counts.answered} right where {expect:.1%} was expected (p = {p:.2g})"
        if p <= alpha / PARTS:
            bad = counts.correct <= expect * counts.answered / 2
            kind = GARBAGE if bad else DEGRADED
            name = "wrong-answers" if bad else "drift"
            word = "answers exact questions wrong" if bad else "answers worse than it should"
            found = (*kinds, name) if kinds else (name,)
            return Verdict(kind, f"The server {word}: {seen}", arm.name, found, (seen, *reasons), _ALONE)
        reasons.insert(0, seen)
    elif _hardly_right(last):
        headline = f"Almost nothing is right ({_right(arm)}); without a control arm or --expect this cannot be judged"
        return Verdict(INCONCLUSIVE, headline, reasons=tuple(reasons), does_not_mean=_ONE_ARM)
    headline = f"No garbage seen in {counts.answered:,} answers of one server ({_right(arm)} right)"
    return Verdict(NOTHING_FOUND, headline, reasons=tuple(reasons), does_not_mean=_ONE_ARM)


def _hardly_right(one: PassFacts) -> bool:
    """So few that a broken server and a model that cannot do this look alike."""
    counts = one.counts
    return bool(counts.answered) and counts.correct <= _HARDLY * counts.answered


_ONE_ARM = (
    "It does not mean that the answers are as good as they should be: without a control arm or --expect a low "
    "share of right answers may be the model's own.",
    "It speaks of these questions only, at this prompt length and load.",
)
_ALONE = (*_EXACT, "Without a control arm it does not tell a broken kernel from a broken checkpoint.")


def _blocked(
    arms: tuple[ArmFacts, ...], pair: Comparison, floor: Comparison | None, alpha: float
) -> Verdict | None:
    for arm in arms:
        last = arm.passes[-1] if arm.passes else None
        if last is None or _few(last) or _too_many_errors(last):
            return _too_few(arm, last)
    scored = any(arm.passes[-1].counts.asked for arm in arms)
    if scored and pair.pairs.total < ENOUGH:
        return Verdict(INCONCLUSIVE, f"Only {pair.pairs.total} questions were answered by both arms")
    return _unstable(floor) if floor is not None and floor.p <= alpha else None


def _corrupted(arms: tuple[ArmFacts, ...]) -> Verdict | None:
    """The server's own count of requests with NaN logits needs no statistics (VLLM_COMPUTE_NANS_IN_LOGITS=1)."""
    arm = max(arms, key=lambda one: one.corrupted or 0.0)
    if not arm.corrupted:
        return None
    what = f"the server counts {arm.corrupted:.0f} requests with NaN logits"
    last = arm.passes[-1]
    return Verdict(
        GARBAGE,
        f"Arm {arm.name} answers garbage: {what} ({_right(arm)} right)",
        arm.name,
        tuple(dict.fromkeys(("nan", *_kinds(last)))),
        (what,),
        _EXACT,
    )


def _errors_words(arms: tuple[ArmFacts, ...]) -> str:
    failed = [f"{arm.name} {arm.passes[-1].counts.error}" for arm in arms if arm.passes[-1].counts.error]
    return f"; errors: {', '.join(failed)}" if failed else ""


def _few(one: PassFacts) -> bool:
    """Too few answers to say anything. Questions without a right answer can be looked at."""
    return (one.counts.answered if one.counts.asked else one.looked_at) < ENOUGH


def _too_many_errors(one: PassFacts) -> bool:
    return one.counts.error > _MOST_ERRORS * one.counts.asked


def _too_few(arm: ArmFacts, last: PassFacts | None) -> Verdict:
    if last is None:
        headline = f"Arm {arm.name} could not be asked: {arm.problem or 'no answer'}"
    elif max(last.counts.asked, last.looked_at) < ENOUGH and not last.counts.error:
        asked = max(last.counts.asked, last.looked_at)
        headline = f"Only {asked} questions were asked of arm {arm.name}; at least {ENOUGH} are needed"
    else:
        counts = last.counts
        errors = ", ".join(f"{name} {n}" for name, n in last.errors.items()) or "no errors"
        headline = f"Arm {arm.name} answered {counts.answered} of {counts.asked} questions ({errors})"
    return Verdict(
        INCONCLUSIVE,
        headline,
        arm.name,
        does_not_mean=("Errors of transport say nothing about how right the answers are.",),
    )


def _unstable(floor: Comparison) -> Verdict:
    pairs = floor.pairs
    return Verdict(
        INCONCLUSIVE,
        f"Arm A does not agree with itself: {pairs.lost} questions lost and {pairs.won} won between two askings",
        "A",
        reasons=(_pair_words(floor),),
        does_not_mean=("It does not say which arm is right: the control itself changes.",),
    )


def _worse_by_answers(pair: Comparison, floor: Comparison | None, alpha: float) -> str | None:
    """The arm with fewer right answers, beyond chance and beyond what A differs from itself."""
    pairs = pair.pairs
    net = pairs.lost - pairs.won
    noise = abs(floor.pairs.lost - floor.pairs.won) if floor is not None else 0
    if pair.p > alpha or abs(net) <= noise or net == 0:
        return None
    return "B" if net > 0 else "A"


def _bad(
    arms: tuple[ArmFacts, ...], pair: Comparison, odd: Collapse | None, name: str, *, by_answers: bool
) -> Verdict:
    """The worse arm is ``name``: by its answers, by their look, or by both."""
    worse = next(arm for arm in arms if arm.name == name)
    last = worse.passes[-1]
    pairs = pair.pairs
    had = pairs.both + (pairs.lost if name == "B" else pairs.won)
    halved = by_answers and 2 * abs(pairs.lost - pairs.won) >= had
    much = odd is not None and odd.odd >= _FIFTH * odd.of
    kind = GARBAGE if halved or much else DEGRADED
    looks = _kinds(last) if odd is not None else ()
    plain = ("wrong-answers",) if halved and not much else ("drift",) if by_answers and not halved else ()
    reasons = [_pair_words(pair)]
    if odd is not None:
        reasons.append(_odd_pair_words(odd))
    what = "answers garbage" if kind == GARBAGE else "answers worse"
    counts = ", ".join(f"{arm.name} {_right(arm)}" for arm in arms)
    parts = [f"right: {counts}"] if pair.pairs.total else []
    if odd is not None:
        parts.append(f"{odd.odd} of {odd.of} answers degenerate ({_odd_words(last)})")
    headline = f"Arm {name} {what}: {'; '.join(parts)}"
    return Verdict(kind, headline, name, tuple(dict.fromkeys((*looks, *plain))), tuple(reasons), _EXACT)


def _bad_somewhere(pair: Comparison, step: StepTest, onset: Onset | None) -> Verdict:
    """The main pass shows no difference, another prompt length or load does."""
    name = step.worse
    right, of, other, other_of = step.b_right, step.b_of, step.a_right, step.a_of
    if name == "A":
        right, of, other, other_of = other, other_of, right, of
    halved = 2 * right * other_of <= other * of
    where = _step_words(step.dimension, step.at)
    border = ""
    if onset is not None and onset.good is not None:
        border = f" (good at {onset.good:,}, bad from {onset.bad:,} on)"
    what = "answers garbage" if halved else "answers worse"
    reasons = (
        f"at {where}: {right} of {of} right, {other} of {other_of} by the other arm, Fisher p = {step.p:.2g}",
    )
    return Verdict(
        GARBAGE if halved else DEGRADED,
        f"Arm {name} {what} at {where}{border}: {right} of {of} easy questions right, "
        f"{other} of {other_of} by the other arm",
        name,
        ("wrong-answers" if halved else "drift",),
        (*reasons, _pair_words(pair)),
        (*_EXACT, "It does not mean that the arm answers worse at the main pass's length and load."),
    )


def _less_sure(arms: tuple[ArmFacts, ...], pair: Comparison, alpha: float) -> Verdict | None:
    """Right answers that an arm thinks much less likely, although it may still give them."""
    fall = pair.fall
    if fall is None or abs(fall.mean) < LESS_SURE or (fall.mean > 0) != (fall.lower > fall.higher):
        return None
    if mcnemar(fall.lower, fall.higher) > alpha:
        return None
    name = "B" if fall.mean > 0 else "A"
    lower = fall.lower if name == "B" else fall.higher
    p = mcnemar(fall.lower, fall.higher)
    what = f"it thinks {lower} of {fall.texts} right answers less likely than the other arm does"
    size = f"{abs(fall.mean):.2f} nats a token on average"
    right = ", ".join(f"{arm.name} {_right(arm)}" for arm in arms)
    return Verdict(
        DEGRADED,
        f"Arm {name} answers worse: {what}, by {size}; right: {right}",
        name,
        ("drift",),
        (f"{what}, by {size}; sign test p = {p:.2g}", _pair_words(pair)),
        (*_EXACT, "It does not mean that more answers are wrong: that was not shown."),
    )


def _apart_words(pair: Comparison, floor: Comparison | None) -> str:
    """When far more greedy answers differ than by noise, the arms compute other numbers: worth saying."""
    apart, still = pair.divergence, floor.divergence if floor is not None else None
    if apart is None or still is None or not apart.prompts or not still.prompts:
        return ""
    differ, noise = apart.prompts - apart.identical, still.prompts - still.identical
    if fisher_more(differ, apart.prompts, noise, still.prompts) > _APART:
        return ""
    return (
        f"; but {differ} of {apart.prompts} greedy answers differ in their text, {noise} of {still.prompts} "
        f"between two askings of A"
    )


def _step_words(dimension: str, at: int) -> str:
    return f"{at:,} requests at a time" if dimension == CONCURRENCY else f"{at:,} prompt tokens"


def _kinds(one: PassFacts) -> tuple[str, ...]:
    """The catalogue's words, the most frequent look first."""
    counts: collections.Counter[str] = collections.Counter()
    for kind, number in one.odd.items():
        for word in garbage_kinds((kind,)):
            counts[word] += number
    return tuple(word for word, number in counts.most_common() if number >= 0.1 * max(1, one.odd_answers))


def _right(arm: ArmFacts) -> str:
    counts = arm.passes[-1].counts
    return f"{counts.correct} of {counts.answered}"


def _odd_words(one: PassFacts) -> str:
    return ", ".join(f"{kind} {number}" for kind, number in one.odd.items()) or "none"


def _pair_words(pair: Comparison) -> str:
    pairs = pair.pairs
    text = (
        f"{pair.first} against {pair.second}: {pairs.both} right in both, {pairs.lost} only in {pair.first}, "
        f"{pairs.won} only in {pair.second}, {pairs.neither} in neither; exact McNemar p = {pair.p:.2g}"
    )
    return text + (f"; {pair.left_out} pairs left out for errors" if pair.left_out else "")


def _odd_pair_words(odd: Collapse) -> str:
    return (
        f"{odd.odd} of {odd.of} answers of arm {odd.worse} are degenerate, {odd.other_odd} of {odd.other_of} "
        f"of the other arm; Fisher p = {odd.p:.2g}"
    )


def _suspicion(odd: Collapse, alpha: float) -> str:
    if odd.odd and not odd.other_odd:
        return f"{_odd_pair_words(odd)}: not yet evidence at {alpha:g}; more questions (--questions) would decide"
    return f"{_odd_pair_words(odd)}: no difference shown at {alpha:g}"
