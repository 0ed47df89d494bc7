"""Every function against what scipy said, recorded by scripts/stats/record_oracle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crashlab.stats import course, poisson, proportions, rates, special, survival

ORACLE: dict[str, Any] = json.loads(
    (Path(__file__).resolve().parents[2] / "data" / "stats" / "scipy.json").read_text()
)
LIVES = [survival.Life(time, event) for time, event in ORACLE["lives"]]


def test_incomplete_gamma_agrees_to_ten_digits() -> None:
    for a, x, lower, upper in ORACLE["gamma"]:
        assert special.gamma_p(a, x) == pytest.approx(lower, abs=1e-10)
        assert special.gamma_q(a, x) == pytest.approx(upper, abs=1e-10)


def test_incomplete_gamma_keeps_its_digits_where_it_is_small() -> None:
    for a, x, _, upper in ORACLE["gamma"]:
        if a < 100 and 1e-250 < upper < 0.1:
            assert special.gamma_q(a, x) == pytest.approx(upper, rel=1e-9)


def test_incomplete_beta_agrees_to_ten_digits() -> None:
    for a, b, x, value in ORACLE["beta"]:
        assert special.beta_i(a, b, x) == pytest.approx(value, abs=1e-10)


def test_limits_of_a_count_are_the_chi_square_quantiles() -> None:
    for events, low, high in ORACLE["counts"]:
        found = poisson.count_limits(events)
        assert found.low == pytest.approx(low, rel=1e-10, abs=1e-14)
        assert found.high == pytest.approx(high, rel=1e-10)


def test_limits_of_a_share_are_clopper_and_pearsons() -> None:
    for successes, trials, low, high in ORACLE["shares"]:
        assert proportions.clopper_pearson(successes, trials) == pytest.approx((low, high), abs=1e-10)


def test_two_rates_are_the_binomial_tails() -> None:
    for r1, t1, r2, t2, less, more in ORACLE["two_rates"]:
        assert rates.fewer_probability(r1, t1, r2, t2) == pytest.approx(less, abs=1e-10)
        assert rates.two_rates_probability(r1, t1, r2, t2) == pytest.approx(
            min(1, 2 * min(less, more)), abs=1e-10
        )


def test_the_weibull_fit_with_censoring_is_the_same_maximum() -> None:
    fit = course.weibull(LIVES)
    assert fit is not None
    assert [fit.shape, fit.scale] == pytest.approx(ORACLE["weibull"], rel=1e-4)
    assert fit.low < fit.shape < fit.high


def test_kaplan_meier_with_its_limits_is_the_same_curve() -> None:
    steps = {step.time: step for step in survival.kaplan_meier(LIVES)}
    for time, share, low, high in ORACLE["kaplan_meier"]:
        if time in steps:
            assert steps[time].survival == pytest.approx(share, abs=1e-12)
            assert (steps[time].low, steps[time].high) == pytest.approx((low, high), abs=1e-10)
    assert len(steps) == sum(1 for life in LIVES if life.event)


def test_live_scipy_agrees_where_it_is_installed() -> None:
    scipy = pytest.importorskip("scipy.special")
    for a in (0.7, 3, 25, 812.5):
        for b in (1, 6.5, 90, 2000):
            for x in (0.003, 0.31, 0.5, 0.93):
                assert special.beta_i(a, b, x) == pytest.approx(float(scipy.betainc(a, b, x)), abs=1e-10)
        for x in (0.1, 2.5, 30, 900):
            assert special.gamma_p(a, x) == pytest.approx(float(scipy.gammainc(a, x)), abs=1e-10)
