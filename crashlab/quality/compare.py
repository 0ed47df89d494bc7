"""Two passes over the same questions: pairs, McNemar, limits, divergence, and the questions that differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crashlab.quality.answered import Answered
from crashlab.quality.divergence import Said, diverge
from crashlab.quality.facts import Collapse, Comparison, Differs, Power, StepTest
from crashlab.quality.logprobs import Likelihoods, distance, fall
from crashlab.quality.scoring import ERROR
from crashlab.quality.talk import Cell
from crashlab.quality.task import Task
from crashlab.stats.paired import Pairs, detectable_drop, drop_limits, mcnemar
from crashlab.stats.proportions import fisher_more

_EXAMPLES = 4
_SHOWN = 160


class Side:
    """One pass of one arm as the comparison takes it."""

    __slots__ = ("answers", "likelihoods", "name", "prose")

    def __init__(
        self,
        name: str,
        answers: Sequence[Answered],
        prose: Sequence[Answered] = (),
        likelihoods: Likelihoods | None = None,
    ) -> None:
        self.name, self.answers, self.prose, self.likelihoods = name, answers, prose, likelihoods


def compare(first: Side, second: Side, tasks: Mapping[str, Task]) -> Comparison:
    """Pair by question. A pair with an error in either arm is left out: it says nothing about answers."""
    others = {one.task: one for one in second.answers}
    both = lost = won = neither = left_out = 0
    differing: list[Differs] = []
    for one in first.answers:
        other = others.get(one.task)
        if one.outcome is None or other is None or other.outcome is None:
            continue
        if ERROR in (one.outcome, other.outcome):
            left_out += 1
            continue
        both += one.right and other.right
        neither += not one.right and not other.right
        lost += one.right and not other.right
        won += not one.right and other.right
        if one.right != other.right:
            differing.append(_differs(one, other, tasks.get(one.task)))
    pairs = Pairs(both, lost, won, neither)
    limits = drop_limits(pairs)
    return Comparison(
        first.name,
        second.name,
        pairs,
        left_out,
        mcnemar(lost, won),
        pairs.drop,
        None if limits is None else limits.low,
        None if limits is None else limits.high,
        diverge((*first.answers, *first.prose), (*second.answers, *second.prose)),
        distance(first.likelihoods, second.likelihoods),
        fall(first.likelihoods, second.likelihoods),
        tuple(sorted(differing, key=lambda d: not d.lost)[:_EXAMPLES]),
    )


def _differs(one: Answered, other: Answered, task: Task | None) -> Differs:
    return Differs(
        one.task,
        one.level,
        task.question[-_SHOWN:] if task is not None else "",
        task.answer[:_SHOWN] if task is not None else "",
        Said(one.text.strip()[:_SHOWN]),
        Said(other.text.strip()[:_SHOWN]),
        one.right,
    )


def collapse(
    name: str, answers: Sequence[Answered], other: str, others: Sequence[Sequence[Answered]]
) -> Collapse | None:
    """Degenerate answers of arm ``name`` against all passes of the other arm; the arm that has the larger
    share is ``worse``. None if neither has any."""
    odd, of = _odd(answers)
    other_odd = sum(_odd(one)[0] for one in others)
    other_of = sum(_odd(one)[1] for one in others)
    if not odd + other_odd or not of or not other_of:
        return None
    if odd * other_of >= other_odd * of:
        return Collapse(name, odd, of, other_odd, other_of, fisher_more(odd, of, other_odd, other_of))
    return Collapse(other, other_odd, other_of, odd, of, fisher_more(other_odd, other_of, odd, of))


def step_tests(first: Sequence[Cell], second: Sequence[Cell]) -> tuple[StepTest, ...]:
    """Each step that both arms were asked at. Copies of a question count once (:func:`ladder.came`)."""
    others = {(cell.dimension, cell.at): cell for cell in second}
    out = []
    for a in first:
        b = others.get((a.dimension, a.at))
        if b is None or not a.of or not b.of:
            continue
        missed_a, missed_b = a.of - a.right, b.of - b.right
        if missed_b * a.of >= missed_a * b.of:
            worse, p = "B", fisher_more(missed_b, b.of, missed_a, a.of)
        else:
            worse, p = "A", fisher_more(missed_a, a.of, missed_b, b.of)
        out.append(StepTest(a.dimension, a.at, a.right, a.of, b.right, b.of, worse, p))
    return tuple(out)


def _odd(answers: Sequence[Answered]) -> tuple[int, int]:
    rows = [one for one in answers if one.outcome != ERROR]
    return sum(bool(one.kinds) for one in rows), len(rows)


def power_of(questions: int, floor: Comparison | None, alpha: float) -> Power:
    """What a run of this size can see, in words. Without an A/A pair no noise is assumed, and said so."""
    noise = 0.0
    if floor is not None and floor.pairs.total:
        noise = floor.pairs.differing / floor.pairs.total
    drop = detectable_drop(questions, noise, alpha) if questions else None
    if drop is None:
        words = f"With {questions} questions even a total loss could not be shown at level {alpha:g}."
        return Power(questions, noise, None, words)
    source = (
        f"{noise:.1%} of the answers flip by themselves (A against A)"
        if floor is not None
        else "no answer flips by itself, which was not measured"
    )
    words = (
        f"With {questions} questions, if {source}, a true fall of {drop * 100:.1f} points is shown four times "
        f"in five; a smaller one is mostly missed: this finds garbage, not drift."
    )
    return Power(questions, noise, drop, words)
