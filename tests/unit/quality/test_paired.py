from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab.stats import paired, proportions


def brute_mcnemar(lost: int, won: int) -> float:
    """By counting all outcomes of fair coins."""
    total, small = lost + won, min(lost, won)
    hits = sum(sum(coins) <= small for coins in itertools.product((0, 1), repeat=total))
    return min(1.0, 2 * hits / 2**total)


@pytest.mark.parametrize(("lost", "won"), [(0, 0), (1, 0), (5, 5), (8, 0), (10, 2), (3, 9), (7, 6)])
def test_mcnemar_is_what_counting_all_outcomes_gives(lost: int, won: int) -> None:
    assert paired.mcnemar(lost, won) == pytest.approx(brute_mcnemar(lost, won), rel=1e-12)


def test_mcnemar_is_symmetric_and_survives_large_counts() -> None:
    assert paired.mcnemar(1200, 100) == paired.mcnemar(100, 1200)
    assert 0.0 < paired.mcnemar(1200, 100) < 1e-200
    with pytest.raises(ValueError, match="no counts"):
        paired.mcnemar(-1, 3)


@given(st.integers(0, 300), st.sampled_from([0.05, 0.01, 0.001]))
def test_the_smallest_significant_number_of_losses_is_significant_and_one_less_is_not(
    total: int, alpha: float
) -> None:
    needed = paired.smallest_significant(total, alpha)
    if needed is None:
        assert paired.mcnemar(total, 0) > alpha
        return
    assert paired.mcnemar(needed, total - needed) <= alpha
    if 2 * (needed - 1) >= total:
        assert paired.mcnemar(needed - 1, total - needed + 1) > alpha


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    # NIST Engineering Statistics Handbook 7.2.4.1 gives 4 of 20; the others follow from the closed forms
    [(0, 10, 0.0, 0.3084971), (10, 10, 0.6915029, 1.0), (4, 20, 0.0573340, 0.4366140)],
)
def test_clopper_pearson_agrees_with_published_values(k: int, n: int, low: float, high: float) -> None:
    assert proportions.clopper_pearson(k, n) == pytest.approx((low, high), abs=1e-6)


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_clopper_pearson_holds_the_seen_share_and_its_tails_are_at_most_half_of_the_error(
    case: tuple[int, int],
) -> None:
    k, n = case
    low, high = proportions.clopper_pearson(k, n)
    assert 0.0 <= low <= k / n <= high <= 1.0
    if k:
        assert proportions.binomial_at_least(k, n, low) == pytest.approx(0.025, abs=1e-6)
    if k < n:
        assert proportions.binomial_at_most(k, n, high) == pytest.approx(0.025, abs=1e-6)


def test_without_trials_nothing_is_known_and_nonsense_is_refused() -> None:
    assert proportions.clopper_pearson(0, 0) == (0.0, 1.0)
    for k, n, level in ((3, 2, 0.95), (-1, 2, 0.95), (1, 2, 1.0)):
        with pytest.raises(ValueError, match="no share"):
            proportions.clopper_pearson(k, n, level)
    with pytest.raises(ValueError, match="no shares"):
        proportions.fisher_more(3, 2, 0, 1)


@given(st.integers(0, 40), st.floats(0.0, 1.0))
def test_the_two_binomial_tails_make_one(n: int, p: float) -> None:
    for k in range(-1, n + 2):
        whole = proportions.binomial_at_most(k, n, p) + proportions.binomial_at_least(k + 1, n, p)
        assert whole == pytest.approx(1.0, abs=1e-9)


def test_fisher_is_what_counting_all_draws_gives() -> None:
    for k1, n1, k2, n2 in ((3, 3, 0, 3), (2, 4, 1, 5), (0, 2, 3, 4), (4, 6, 1, 6)):
        population = [1] * (k1 + k2) + [0] * (n1 + n2 - k1 - k2)
        draws = list(itertools.combinations(range(n1 + n2), n1))
        hits = sum(sum(population[i] for i in draw) >= k1 for draw in draws)
        assert proportions.fisher_more(k1, n1, k2, n2) == pytest.approx(hits / len(draws))
    assert proportions.fisher_more(0, 0, 1, 5) == 1.0


def test_power_is_the_share_of_simulated_runs_that_show_the_drop() -> None:
    rng = random.Random(3)
    count, drop, noise, alpha = 150, 0.08, 0.06, 0.01
    shown = 0
    for _ in range(3000):
        lost = won = 0
        for _ in range(count):
            dice = rng.random()
            lost += dice < drop + noise / 2
            won += dice > 1 - noise / 2
        shown += paired.mcnemar(lost, won) <= alpha
    assert paired.power(count, drop, noise, alpha) == pytest.approx(shown / 3000, abs=0.03)


def test_the_detectable_drop_reaches_the_wanted_power_and_a_bit_less_does_not() -> None:
    for count, noise in ((60, 0.0), (200, 0.05), (1319, 0.1)):
        drop = paired.detectable_drop(count, noise, 0.01)
        assert drop is not None
        assert paired.power(count, drop, noise, 0.01) >= 0.8
        assert paired.power(count, drop - 0.001, noise, 0.01) < 0.8


def test_the_design_figures_for_200_and_1319_questions_hold() -> None:
    """200 questions see some 8 to 14 points, 1,319 see 3 to 5 when answers flip as two askings do."""
    small = paired.detectable_drop(200, 0.15, 0.05)
    large = paired.detectable_drop(1319, 0.15, 0.05)
    assert small is not None
    assert large is not None
    assert 0.08 <= small <= 0.14
    assert 0.03 <= large <= 0.05


def test_too_few_questions_can_show_nothing() -> None:
    assert paired.detectable_drop(5, 0.0, 0.01) is None
    assert paired.power(0, 0.5, 0.0, 0.01) == 0.0


def test_the_limits_of_a_drop_hold_it_and_are_none_without_pairs() -> None:
    pairs = paired.Pairs(100, 20, 3, 77)
    limits = paired.drop_limits(pairs)
    assert pairs.drop == pytest.approx(0.085)
    assert limits is not None
    assert limits.low < 0.085 < limits.high
    assert limits.low > 0.0
    assert paired.drop_limits(paired.Pairs()) is None
    assert paired.Pairs().drop is None
