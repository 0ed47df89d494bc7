"""Survival curves and the question whether a rate is constant: textbook data, coverage, exact small cases."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab.stats import course
from crashlab.stats.survival import Life, kaplan_meier

# Freireich et al. 1963: weeks in remission under 6-MP, the classical example of Cox (1972)
REMISSION = [
    *(Life(t, True) for t in (6, 6, 6, 7, 10, 13, 16, 22, 23)),
    *(Life(t, False) for t in (6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35)),
]

positive = st.floats(0.001, 1e4)


def test_kaplan_meier_of_the_classical_remission_times() -> None:
    steps = kaplan_meier(REMISSION)
    assert [step.time for step in steps] == [6, 7, 10, 13, 16, 22, 23]
    published = [0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448]
    assert [step.survival for step in steps] == pytest.approx(published, abs=6e-4)
    assert [step.at_risk for step in steps] == [21, 17, 15, 12, 11, 7, 6]
    assert all(step.low is not None and step.low < step.survival < (step.high or 0) for step in steps)


def test_a_curve_that_ends_at_zero_has_no_limits_there() -> None:
    steps = kaplan_meier([Life(1.0, True), Life(2.0, True)])
    assert steps[-1][1:4] == (0.0, None, None)
    assert kaplan_meier([Life(3.0, False)]) == ()
    assert kaplan_meier([]) == ()


@given(st.lists(st.builds(Life, positive, st.booleans()), max_size=40))
def test_curves_only_fall_and_without_censoring_are_the_plain_shares(lives: list[Life]) -> None:
    steps = kaplan_meier(lives)
    shares = [1.0, *(step.survival for step in steps)]
    assert shares == sorted(shares, reverse=True)
    if all(life.event for life in lives):
        for step in steps:
            left = sum(1 for life in lives if life.time > step.time)
            assert step.survival == pytest.approx(left / len(lives), abs=1e-12)


def test_laplace_of_evenly_spread_events_is_zero_and_of_late_ones_positive() -> None:
    even = course.laplace([1, 2, 3, 4, 5, 6, 7, 8, 9], 10.0)
    assert even is not None
    assert even.statistic == pytest.approx(0.0, abs=1e-12)
    assert even.p == pytest.approx(1.0)
    late = course.laplace([8, 8.5, 9, 9.5], 10.0)
    assert late is not None
    # mean 8.75, centre 5, sqrt(12 * 4) / 10
    assert late.statistic == pytest.approx(3.75 * math.sqrt(48) / 10)
    assert late.p == pytest.approx(0.00938, abs=1e-4)


def test_laplace_stopped_at_an_event_leaves_that_event_out() -> None:
    found = course.laplace([1, 3, 4], 4.0, ends_at_event=True)
    assert found is not None
    assert found.statistic == pytest.approx(0.0)
    assert course.laplace([4.0], 5.0) is None
    assert course.laplace([1, 4], 4.0, ends_at_event=True) is None


def test_laplace_rejects_a_constant_rate_at_its_level() -> None:
    rnd = random.Random(8)
    rejected = 0
    for _ in range(2000):
        trend = course.laplace([rnd.uniform(0, 7.0) for _ in range(12)], 7.0)
        assert trend is not None
        rejected += trend.p <= 0.05
    assert 0.035 <= rejected / 2000 <= 0.065


@pytest.mark.parametrize("shape", [0.6, 1.0, 3.0])
def test_weibull_limits_hold_the_true_shape_about_as_often_as_they_say(shape: float) -> None:
    rnd, held, sweeps = random.Random(5), 0, 250
    for _ in range(sweeps):
        times = [rnd.weibullvariate(2.0, shape) for _ in range(20)]
        fit = course.weibull([Life(min(t, 4.0), t <= 4.0) for t in times])
        assert fit is not None
        held += fit.low <= shape <= fit.high
    assert 0.90 <= held / sweeps <= 0.99


def test_times_that_bunch_give_a_shape_far_above_one() -> None:
    minutes = [22.6, 23.1, 22.9, 23.4, 22.8, 23.0, 23.3, 22.7, 23.2, 23.0]
    fit = course.weibull([Life(t / 60, True) for t in minutes])
    assert fit is not None
    assert fit.low > 40
    assert fit.scale * 60 == pytest.approx(23.1, abs=0.1)


def test_a_shape_needs_two_different_event_times() -> None:
    assert course.weibull([]) is None
    assert course.weibull([Life(1.0, True), Life(1.0, True)]) is None
    assert course.weibull([Life(1.0, False), Life(2.0, False)]) is None


def test_the_bunching_chance_is_exact_for_a_constant_rate() -> None:
    rnd, sweeps = random.Random(3), 4000
    for n in (2, 3, 6):
        found = [course.bunching_probability([rnd.expovariate(1.0) for _ in range(n)]) for _ in range(sweeps)]
        for level in (0.01, 0.1, 0.5):
            share = sum((p or 0.0) <= level for p in found) / sweeps
            assert share == pytest.approx(level, abs=4 * math.sqrt(level / sweeps))
    assert course.bunching_probability([1.0]) is None
    assert course.bunching_probability([0.0, 0.0]) is None
    assert course.bunching_probability([2.0, 2.0, 2.0]) == pytest.approx(0.0, abs=1e-12)


def test_outliving_by_ranks_alone() -> None:
    assert course.outlived_probability(3, 1) == 0.25
    assert course.outlived_probability(3, 3) == 0.05
    assert [course.outliving_needed(k) for k in (1, 2, 3, 4, 5)] == [19, 5, 3, 3, 2]
    assert course.outliving_needed(0) is None
    rnd, sweeps = random.Random(2), 4000
    hits = 0
    for _ in range(sweeps):
        theirs = [rnd.weibullvariate(1, 9) for _ in range(3)]
        hits += min(rnd.weibullvariate(1, 9) for _ in range(2)) > max(theirs)
    assert hits / sweeps == pytest.approx(course.outlived_probability(3, 2), abs=0.02)


def test_outlasting_is_students_prediction_and_exact_for_log_normal_times() -> None:
    # logarithms 0, 1, 2: mean 1, deviation 1; t = 2/sqrt(4/3) with 2 degrees of freedom: (1 - t/sqrt(2 + t^2))/2
    found = course.outlasting_probability([1.0, math.e, math.e**2], math.e**3)
    assert found == pytest.approx(0.112702, abs=1e-6)
    assert course.outlasting_probability([1.0, math.e, math.e**2], 1 / math.e) == pytest.approx(
        1 - 0.112702, abs=1e-6
    )
    assert course.outlasting_probability([2.0], 3.0) is None
    assert course.outlasting_probability([2.0, 2.0], 3.0) == 0.0
    assert course.outlasting_probability([2.0, 2.0], 1.0) == 1.0
    rnd, sweeps, hits = random.Random(6), 4000, 0
    for _ in range(sweeps):
        times = [rnd.lognormvariate(0, 0.2) for _ in range(4)]
        hits += (course.outlasting_probability(times, rnd.lognormvariate(0, 0.2)) or 0.0) <= 0.05
    assert hits / sweeps == pytest.approx(0.05, abs=0.011)


@given(st.lists(st.builds(Life, positive, st.booleans()), max_size=30))
def test_any_lives_give_a_fit_or_none(lives: list[Life]) -> None:
    fit = course.weibull(lives)
    if fit is not None:
        assert 0 < fit.low <= fit.shape * (1 + 1e-9)
        assert fit.shape <= fit.high * (1 + 1e-9)
