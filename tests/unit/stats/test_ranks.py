"""The stratified comparison by ranks: exact small cases, its level under any hazard, and what it leaves out."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab.stats import ranks
from crashlab.stats.survival import Life


def lives(*times: float) -> list[Life]:
    """Positive times end in the event, negative ones without."""
    return [Life(abs(t), t > 0) for t in times]


def rank_probability(strata: Iterable[ranks.Stratum]) -> float | None:
    tails = ranks.rank_tails(strata)
    return None if tails is None else ranks.two_sided(tails)


def test_complete_separation_has_the_chance_of_one_order_in_all() -> None:
    for runs in (1, 2, 3, 5):
        bad = lives(*(0.1 * (i + 1) for i in range(runs)))
        good = lives(*(-1.0 for _ in range(runs)))
        tails = ranks.rank_tails([(bad, good)])
        assert tails is not None
        assert tails[1] == pytest.approx(1 / math.comb(2 * runs, runs))


def test_pairs_of_runs_are_coins() -> None:
    pairs = [(lives(0.3), lives(-1.0))] * 4
    assert ranks.rank_tails(pairs) == pytest.approx((1.0, 1 / 16))
    assert rank_probability([*pairs, (lives(-1.0), lives(0.5))]) == pytest.approx(2 * 6 / 32)


def test_after_the_last_of_a_group_events_tell_nothing() -> None:
    assert ranks.rank_tails([(lives(-0.5), lives(0.7, 0.9))]) is None
    assert ranks.rank_tails([(lives(0.5), [])]) is None
    assert ranks.rank_tails([(lives(0.5), lives(0.5))]) is None
    assert ranks.rank_tails([]) is None
    assert rank_probability([(lives(-1.0), lives(-1.0))]) is None


def test_events_at_the_same_time_are_drawn_without_putting_back() -> None:
    # two events among two and two at risk: 1/6, 4/6, 1/6
    assert ranks.rank_tails([(lives(1.0, 1.0), lives(-2.0, -2.0))]) == pytest.approx((1.0, 1 / 6))


def test_groups_that_differ_only_between_strata_are_not_told_apart() -> None:
    # the first group was mostly run where faults are common: pooled it would look guilty
    apart = [(lives(*[0.1 * i for i in range(1, 21)]), lives(0.5, 1.5)), (lives(-1.0), lives(*[-1.0] * 20))]
    assert (rank_probability(apart) or 0.0) > 0.3


@pytest.mark.parametrize(
    ("strata", "runs", "budgets", "draw"),
    [
        (32, 1, (1.0, 1.0), lambda rnd: rnd.expovariate(1.0)),
        (8, 2, (0.5, 2.0), lambda rnd: rnd.expovariate(1.0)),
        (4, 4, (0.9, 1.3), lambda rnd: rnd.weibullvariate(1.0, 8)),
        (16, 2, (1.0, 1.0), lambda rnd: rnd.weibullvariate(1.0, 0.4)),
    ],
    ids=["sparse", "unequal budgets", "bunched", "early"],
)
def test_the_level_holds_whatever_the_hazard(
    strata: int, runs: int, budgets: tuple[float, float], draw: Callable[[random.Random], float]
) -> None:
    rnd, sweeps, rejected = random.Random(7), 600, 0
    for _ in range(sweeps):
        made = []
        for _ in range(strata):
            groups = []
            for budget in budgets:
                times = [draw(rnd) for _ in range(runs)]
                groups.append([Life(min(t, budget), t < budget) for t in times])
            made.append((groups[0], groups[1]))
        rejected += (rank_probability(made) or 1.0) <= 0.05
    assert rejected / sweeps <= 0.05 + 2 * math.sqrt(0.05 / sweeps)


@pytest.mark.parametrize("questions", [1, 3, 6])
def test_runs_needed_are_the_fewest_that_separate(questions: int) -> None:
    runs = ranks.separation_needed(questions)

    def p(number: int) -> float:
        bad, good = lives(*(0.1 * (i + 1) for i in range(number))), lives(*[-9.0] * number)
        return (rank_probability([(bad, good)]) or 1.0) * questions

    assert p(runs) <= 0.05 < p(runs - 1)


def test_the_normal_distribution_that_very_many_events_use_is_close(monkeypatch: pytest.MonkeyPatch) -> None:
    rnd = random.Random(1)
    strata = [
        (lives(*(rnd.random() + 0.01 for _ in range(40))), lives(*(rnd.random() + 0.1 for _ in range(40))))
        for _ in range(4)
    ]
    exact = ranks.rank_tails(strata)
    assert exact is not None
    monkeypatch.setattr(ranks, "_CONVOLVED", 0)
    assert ranks.rank_tails(strata) == pytest.approx(exact, abs=0.005)
    assert ranks.rank_tails([(lives(0.5), lives(-1.0))]) == pytest.approx((0.98, 0.5), abs=0.03)


some = st.lists(st.builds(Life, st.floats(0, 10), st.booleans()), max_size=12)


@given(st.lists(st.tuples(some, some), max_size=5))
def test_tails_cover_everything_and_mirror(strata: list[tuple[list[Life], list[Life]]]) -> None:
    tails = ranks.rank_tails(strata)
    turned = ranks.rank_tails((b, a) for a, b in strata)
    if tails is None:
        assert turned is None
        return
    assert all(0 <= tail <= 1 for tail in tails)
    assert sum(tails) >= 1 - 1e-9
    assert turned == pytest.approx((tails[1], tails[0]))
