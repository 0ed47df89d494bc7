"""What the wrapper costs: the statistic of alternating blocks, and the blocks themselves."""

from __future__ import annotations

import itertools
import math
import random
import statistics
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

# These live in scripts/gpu, which conftest puts on the path.
from proof import measures  # isort: skip
from proof.paired import middle, ratio, signed_rank_limits, signed_rank_tails  # isort: skip
from proof.turns import Turns  # isort: skip
import accept_run  # isort: skip

Rounds = list[tuple[list[float], list[float]]]


def simulated(chance: random.Random, true: float, rounds: int, blocks: int = 10) -> Rounds:
    """Processes that differ by half a percent, drift that both share, blocks that scatter by one percent,
    and now and then a block that something else slowed down by half."""
    out: Rounds = []
    for _ in range(rounds):
        process = [chance.gauss(0.0, 0.004) for _ in range(2)]
        base: list[float] = []
        other: list[float] = []
        drift = chance.gauss(0.0, 0.05)
        for _ in range(blocks):
            drift += chance.gauss(0.0, 0.01)
            for arm, times in enumerate((base, other)):
                slow = 0.4 if chance.random() < 0.05 else 0.0
                log = drift + process[arm] + chance.gauss(0.0, 0.01) + slow + (math.log(true) if arm else 0.0)
                times.append(150.0 * math.exp(log))
        out.append((base, other))
    return out


@pytest.mark.parametrize("true", [1.0, 1.005, 1.03])
def test_the_interval_holds_the_truth_as_often_as_it_claims(true: float) -> None:
    chance = random.Random(5)
    found = [ratio(simulated(chance, true, 16)) for _ in range(200)]
    held = sum(one is not None and one.low <= true <= one.high for one in found)
    assert held >= 183, "95 % of 200 are 190, less three standard deviations"
    errors = [one.value / true - 1 for one in found if one is not None]
    assert abs(statistics.median(errors)) < 0.001, "no bias"


def test_sixteen_rounds_tell_to_half_a_percent_and_many_blocks_cannot_replace_them() -> None:
    chance = random.Random(6)
    many = [ratio(simulated(chance, 1.0, 16)) for _ in range(50)]
    few = [ratio(simulated(chance, 1.0, 6, 27)) for _ in range(50)]
    halves = [[one.half for one in some if one is not None] for some in (many, few)]
    assert statistics.median(halves[0]) < 0.005
    assert statistics.median(halves[1]) > 1.3 * statistics.median(halves[0])


def test_a_slow_drift_does_not_matter_as_blocks_alternate() -> None:
    rounds = [([100.0 * 1.1**i for i in range(8)], [100.5 * 1.1**i for i in range(8)])] * 6
    found = ratio(rounds)
    assert found is not None
    assert found.value == pytest.approx(1.005)
    assert (found.low, found.high) == (pytest.approx(1.005), pytest.approx(1.005))
    assert (found.rounds, found.pairs) == (6, 48)


def test_a_wild_round_does_not_move_the_estimate() -> None:
    assert middle([0.0, 0.001, -0.001, 0.0005, -0.0005, 5.0]) == pytest.approx(0.0, abs=0.001)


def test_too_few_rounds_say_nothing_and_none_gives_none() -> None:
    found = ratio([([1.0], [1.1])] * 4)
    assert found is not None
    assert (found.low, found.high) == (0.0, math.inf)
    assert ratio([]) is None
    assert ratio([([], [])]) is None


def test_the_signed_rank_distribution_is_that_of_all_signs() -> None:
    for count in range(1, 9):
        sums = [
            sum(rank for rank, plus in zip(range(1, count + 1), signs, strict=True) if plus)
            for signs in itertools.product((0, 1), repeat=count)
        ]
        tails = signed_rank_tails(count)
        assert tails == [sum(s <= w for s in sums) / 2**count for w in range(len(tails))]


def test_known_critical_values() -> None:
    """Of the published tables, two-sided 5 %: n = 6: 0, 10: 8, 20: 52."""
    for count, critical in ((6, 0), (10, 8), (20, 52)):
        tails = signed_rank_tails(count)
        assert max(w for w, tail in enumerate(tails) if tail <= 0.025) == critical


@settings(deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=6, max_size=25), st.floats(-1, 1))
def test_limits_hold_the_estimate_and_move_with_the_values(values: list[float], shift: float) -> None:
    low, high = signed_rank_limits(values)
    assert low <= middle(values) <= high
    moved = signed_rank_limits([value + shift for value in values])
    assert moved == (pytest.approx(low + shift), pytest.approx(high + shift))


PROGRAM = """\
import json, os, random, sys
for line in sys.stdin:
    dumps = os.environ.get("CUDA_ENABLE_COREDUMP_ON_EXCEPTION") == "1"
    value = 100.0 * random.gauss(1.0, 0.002) * (1.05 if dumps else 1.0)
    print(json.dumps({"eager_us": {"median": 2 * value}, "graph_us": {"median": value}}), flush=True)
"""


def test_three_arms_take_turns_and_the_drivers_price_is_told_from_the_wrappers(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    found = measures.launch_overhead([sys.executable, str(script)], tmp_path, 6, math.inf, cycles=2)
    assert found["rounds"] == 6
    for name, bare in (("eager_us", 200.0), ("graph_us", 100.0)):
        row = found[name]
        assert row["bare"] == pytest.approx(bare, rel=0.01)
        assert row["driver"]["value"] == pytest.approx(1.05, rel=0.01)
        assert row["wrapper"]["value"] == pytest.approx(1.0, rel=0.01)
        assert row["cost"]["value"] == pytest.approx(1.05, rel=0.01)
        assert (row["wrapper"]["rounds"], row["wrapper"]["pairs"]) == (6, 24)
    assert accept_run.judge_overhead(found) == []


def test_a_program_that_says_nothing_gives_no_timings(tmp_path: Path) -> None:
    found = measures.launch_overhead([sys.executable, "-c", "pass"], tmp_path, 1, math.inf, cycles=1)
    assert accept_run.judge_overhead(found) == ["eager_us: no timings", "graph_us: no timings"]


def test_a_block_that_takes_too_long_or_says_nonsense_is_none() -> None:
    silent = Turns([sys.executable, "-c", "import time; time.sleep(60)"])
    assert silent.block(0.2) is None
    silent.end(0.1)
    talker = Turns([sys.executable, "-c", "import sys\nfor l in sys.stdin: print('rubbish', flush=True)"])
    assert talker.block() is None
    talker.end()


@pytest.mark.parametrize(
    ("low", "high", "wrong"),
    [
        (0.998, 1.004, None),
        (1.003, 1.009, None),
        (1.012, 1.02, "of the time with dumps enabled alone"),
        (0.99, 1.02, "known only from"),
    ],
)
def test_what_is_surely_too_slow_or_not_known_well_enough_is_wrong(
    low: float, high: float, wrong: str | None
) -> None:
    row = {"wrapper": {"value": (low + high) / 2, "low": low, "high": high}}
    told = accept_run.judge_overhead({"eager_us": row, "graph_us": row})
    assert bool(told) == (wrong is not None)
    assert wrong is None or all(wrong in one for one in told)
