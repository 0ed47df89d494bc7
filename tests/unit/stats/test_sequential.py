"""Wald's test: its two promises, by simulation, and its arithmetic."""

from __future__ import annotations

import math
import random

import pytest

from crashlab.errors import UsageError
from crashlab.stats import sequential


def decide(rate: float, rnd: random.Random, alpha: float, beta: float) -> str:
    events, time = 0, 0.0
    while True:
        wait = rnd.expovariate(rate)
        left = sequential.sprt(events, time, 1.0, 0.25, alpha, beta).clean_left
        if left is not None and wait >= left:
            return sequential.LOWER
        events, time = events + 1, time + wait
        found = sequential.sprt(events, time, 1.0, 0.25, alpha, beta)
        if found.decision != sequential.CONTINUE:
            return found.decision


@pytest.mark.parametrize(("alpha", "beta"), [(0.05, 0.05), (0.1, 0.2)])
def test_error_rates_keep_walds_bounds(alpha: float, beta: float) -> None:
    rnd, sweeps = random.Random(4), 1500
    false = sum(decide(1.0, rnd, alpha, beta) == sequential.LOWER for _ in range(sweeps)) / sweeps
    missed = sum(decide(0.25, rnd, alpha, beta) == sequential.UNCHANGED for _ in range(sweeps)) / sweeps
    # Wald: false <= alpha/(1-beta), missed <= beta/(1-alpha); three standard errors for the simulation
    assert false <= alpha / (1 - beta) + 3 * math.sqrt(alpha / sweeps)
    assert missed <= beta / (1 - alpha) + 3 * math.sqrt(beta / sweeps)
    assert false > alpha / 4


def test_the_ratio_is_the_formula_of_the_design() -> None:
    found = sequential.sprt(2, 5.0, 1.0, 0.1)
    assert found.log_ratio == pytest.approx(2 * math.log(0.1) + 0.9 * 5.0)
    assert found.reject == pytest.approx(math.log(19))
    assert found.decision == sequential.CONTINUE
    assert sequential.sprt(2, 5.0 + (found.clean_left or 0) * 1.0001, 1.0, 0.1).decision == sequential.LOWER


def test_a_fault_soon_ends_it_the_other_way() -> None:
    found = sequential.sprt(2, 0.5, 1.0, 0.1)
    assert found.decision == sequential.UNCHANGED
    assert found.clean_left is None


@pytest.mark.parametrize(("rate0", "rate1"), [(1.0, 1.0), (1.0, 2.0), (1.0, 0.0), (0.0, -1.0)])
def test_rates_out_of_order_are_a_mistake_of_the_caller(rate0: float, rate1: float) -> None:
    with pytest.raises(UsageError):
        sequential.sprt(0, 1.0, rate0, rate1)
