"""Rates of rare events against published tables, hand computation and exact coverage."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab.stats import multiple, poisson, rates

counts = st.integers(0, 60)
exposures = st.floats(0.01, 1e4)


@pytest.mark.parametrize(
    ("events", "low", "high"),
    [
        (0, 0.0, 3.689), (1, 0.0253, 5.572), (2, 0.242, 7.225), (3, 0.619, 8.767), (4, 1.090, 10.242),
        (5, 1.623, 11.668), (10, 4.795, 18.390), (20, 12.217, 30.888), (50, 37.111, 65.919), (100, 81.364, 121.627),
    ],
)  # fmt: skip
def test_garwoods_table_of_95_percent_limits(events: int, low: float, high: float) -> None:
    found = poisson.count_limits(events)
    assert found.low == pytest.approx(low, abs=6e-4)
    assert found.high == pytest.approx(high, abs=6e-4)


@pytest.mark.parametrize("mean", [0.05, 0.4, 1.0, 2.5, 7.0, 20.0])
def test_garwoods_limits_hold_the_true_mean_at_least_as_often_as_they_say(mean: float) -> None:
    held = 0.0
    for events in range(120):
        low, high = poisson.count_limits(events)
        if low <= mean <= high:
            held += math.exp(events * math.log(mean) - mean - math.lgamma(events + 1))
    assert held >= 0.95


def test_no_event_bounds_the_rate_by_three_over_the_exposure() -> None:
    assert poisson.zero_bound(6.2) == pytest.approx(0.4832, abs=1e-4)
    assert poisson.zero_bound(1.0) == pytest.approx(2.9957, abs=1e-4)
    assert poisson.zero_bound(0.0) is None
    assert poisson.rate_limits(3, 0.0) is None


@pytest.mark.parametrize(
    ("events", "factor"),
    [(1, 19.0), (2, 6.94), (3, 5.14), (4, 4.46), (5, 4.10), (8, 3.63), (10, 3.49), (20, 3.23), (None, 3.00)],
)
def test_the_table_of_clean_exposure_needed(events: int | None, factor: float) -> None:
    assert rates.clean_needed_factor(events) == pytest.approx(factor, abs=0.006)


@pytest.mark.parametrize(("crashes", "p"), [(1, 0.32), (2, 0.23), (3, 0.19)])
def test_the_field_case_of_50_clean_minutes_after_crashes_at_23(crashes: int, p: float) -> None:
    assert rates.clean_probability(crashes, 23.0 * crashes, 50.0) == pytest.approx(p, abs=0.006)
    assert math.exp(-50 / 23) == pytest.approx(0.11, abs=0.005)


def test_three_in_four_hours_against_a_clean_arm_of_6_2_hours() -> None:
    assert rates.clean_probability(3, 4.0, 6.2) == pytest.approx(0.0603, abs=1e-4)
    assert rates.clean_needed(3, 4.0) == pytest.approx(6.86, abs=0.01)


@given(st.integers(1, 60), exposures, st.sampled_from([0.05, 0.01, 0.001]))
def test_the_exposure_needed_is_that_which_reaches_the_level(
    events: int, exposure: float, level: float
) -> None:
    needed = rates.clean_needed(events, exposure, level)
    assert needed is not None
    assert rates.clean_probability(events, exposure, needed) == pytest.approx(level)


@given(counts, exposures, counts, exposures)
def test_a_clean_arm_is_the_special_case_of_two_rates(r1: int, t1: float, r2: int, t2: float) -> None:
    both = rates.two_rates_probability(r1, t1, r2, t2)
    fewer = rates.fewer_probability(r1, t1, r2, t2)
    if r1 + r2 == 0:
        assert both is None
        assert fewer is None
        return
    assert both is not None
    assert fewer is not None
    assert 0 <= fewer <= 1
    assert both == pytest.approx(rates.two_rates_probability(r2, t2, r1, t1) or 0.0, abs=1e-12)
    if r1 == 0:
        assert fewer == pytest.approx(rates.clean_probability(r2, t2, t1) or 0.0, rel=1e-9)


@given(counts, exposures, counts, exposures)
def test_the_ratio_limits_leave_out_one_exactly_when_the_test_rejects(
    r1: int, t1: float, r2: int, t2: float
) -> None:
    limits, p = rates.ratio_limits(r1, t1, r2, t2), rates.two_rates_probability(r1, t1, r2, t2)
    if limits is None or p is None or abs(p - 0.05) < 1e-9:
        return
    assert (limits.low > 1 or limits.high < 1) == (p < 0.05)
    if r1 and r2:
        assert limits.low < r1 / t1 / (r2 / t2) < limits.high
    assert (limits.high == math.inf) == (r2 == 0)
    assert (limits.low == 0) == (r1 == 0)


def test_nothing_to_compare_is_none_and_not_a_number() -> None:
    assert rates.clean_probability(0, 4.0, 6.2) is None
    assert rates.clean_probability(3, 0.0, 6.2) is None
    assert rates.clean_needed(0, 1.0) is None
    assert rates.fewer_probability(1, 0.0, 1, 1.0) is None
    assert rates.fewer_probability(4, 1.0, 0, 1.0) == 1.0
    assert rates.ratio_limits(0, 1.0, 0, 1.0) is None


def test_holms_example_and_order() -> None:
    assert multiple.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert multiple.holm([]) == ()
    assert multiple.holm([0.7, 0.9]) == (1.0, 1.0)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_monotone_and_between_the_raw_and_bonferronis(values: list[float]) -> None:
    adjusted = multiple.holm(values)
    order = sorted(range(len(values)), key=lambda i: values[i])
    assert all(a <= b for a, b in pairwise(adjusted[i] for i in order))
    assert all(p <= q <= min(1.0, p * len(values)) + 1e-15 for p, q in zip(values, adjusted, strict=True))
