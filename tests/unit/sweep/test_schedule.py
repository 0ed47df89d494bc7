"""What is run next: interleaving, closing arms, bisection, and how often it claims what is not there."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest

from crashlab.sweep.facts import (
    CLEAN,
    FAULT,
    HOST_DEATH,
    INCONCLUSIVE,
    NEVER_READY,
    NOT_APPLIED,
    ArmRun,
    Exposure,
)
from crashlab.sweep.plan import Plan, read_plan
from crashlab.sweep.schedule import CLEAN as CLOSED_CLEAN
from crashlab.sweep.schedule import (
    DIFFERS,
    OPEN,
    SPENT,
    UNUSABLE,
    Task,
    bisected,
    next_tasks,
    standings,
    tally,
)
from crashlab.sweep.verdict import judge

KEY = "v1|gpu-fault|A"
SIX = """
[levers]
cudagraph-mode = ["NONE"]
moe-backend = ["marlin"]
attention-backend = ["TRITON_ATTN"]
kv-cache-dtype = ["fp8"]
prefix-caching = ["off"]
chunked-prefill = ["off"]
"""
VERSIONS = """
kind = "bisect"
[bisect]
lever = "cudnn"
values = ["1", "2", "3", "4", "5", "6", "7", "8", "9"]
"""


def plan_of(text: str, **budget: object) -> Plan:
    plan = read_plan(text, "plan.toml", command=["server"])
    return plan._replace(budget=plan.budget._replace(**budget))  # type: ignore[arg-type]


def ran(arm: str, number: int, outcome: str, steps: int = 1000, key: str | None = KEY) -> ArmRun:
    return ArmRun(arm, number, outcome, Exposure(steps, steps / 3.6e6), key if outcome == FAULT else None)


class World:
    """Servers whose arms fault at a rate of their own; ``rates``: faults a step, by arm."""

    def __init__(self, plan: Plan, rates: dict[str, float], seed: int) -> None:
        self.plan, self.rates, self.dice = plan, rates, random.Random(seed)
        self.runs: list[ArmRun] = []

    def make(self, task: Task) -> ArmRun:
        rate = self.rates.get(task.arm, 0.0)
        until = self.dice.expovariate(rate) if rate else float("inf")
        limit = task.exposure or 1e9
        if until < limit:
            return ran(task.arm, task.number, FAULT, max(1, round(until)))
        return ran(task.arm, task.number, CLEAN, math.ceil(limit))

    def go(self, most: int = 5000) -> World:
        while len(self.runs) < most:
            tasks = next_tasks(self.plan, self.runs)
            if not tasks:
                return self
            self.runs.append(self.make(tasks[0]))
        raise AssertionError("the sweep does not end")


def state(plan: Plan, runs: list[ArmRun]) -> dict[str, str]:
    return {one.arm.name: one.state for one in standings(plan, runs)}


def test_the_baseline_comes_first_until_it_has_faulted_often_enough() -> None:
    plan = plan_of(SIX, baseline_faults=3)
    runs: list[ArmRun] = []
    for number in range(3):
        (task,) = next_tasks(plan, runs)
        assert (task.arm, task.number) == ("baseline", number)
        runs.append(ran("baseline", number, FAULT))
    (task,) = next_tasks(plan, runs)
    assert task.arm == "cudagraph-mode=NONE"


def test_baseline_and_arms_run_in_turn() -> None:
    plan = plan_of(SIX, baseline_faults=3)
    world = World(plan, dict.fromkeys((arm.name for arm in plan.arms), 1e-3), 3).go()
    order = [run.arm for run in world.runs]
    first = next(at for at, arm in enumerate(order) if arm != "baseline")
    assert all(order[at] == "baseline" for at in range(first + 1, len(order), 2))


def test_an_arm_gets_the_clean_exposure_that_the_statistics_ask_for() -> None:
    plan = plan_of(SIX, baseline_faults=5)
    runs = [ran("baseline", n, FAULT, 1000) for n in range(5)]
    (task,) = next_tasks(plan, runs)
    # (5000 / (5000 + T))^5 = 0.05 / 6
    assert task.exposure == pytest.approx(5000 * ((0.05 / 6) ** (-1 / 5) - 1))
    runs.append(ran(task.arm, 0, CLEAN, round(task.exposure) + 1))
    assert state(plan, runs)[task.arm] == CLOSED_CLEAN


def test_an_arm_that_did_not_take_is_closed_and_costs_the_others_nothing() -> None:
    plan = plan_of(SIX, baseline_faults=2)
    runs = [ran("baseline", 0, FAULT), ran("baseline", 1, FAULT)]
    before = {one.arm.name: one.needed for one in standings(plan, runs)}
    runs.append(ran("kv-cache-dtype=fp8", 0, NOT_APPLIED))
    after = standings(plan, runs)
    assert state(plan, runs)["kv-cache-dtype=fp8"] == DIFFERS
    needed = next(one.needed for one in after if one.arm.name == "moe-backend=marlin")
    assert needed is not None
    assert needed < (before["moe-backend=marlin"] or 0)


def test_another_bugs_fault_is_exposure_and_no_event() -> None:
    plan = plan_of(SIX, baseline_faults=3)
    runs = [ran("baseline", n, FAULT) for n in range(3)]
    runs.append(ran("moe-backend=marlin", 0, FAULT, key="v1|gpu-fault|B"))
    one = next(s for s in standings(plan, runs) if s.arm.name == "moe-backend=marlin")
    assert (one.tally.events, one.tally.exposure, one.state) == (0, 1000, OPEN)


def test_an_arm_that_cannot_be_used_is_given_up_after_two_tries() -> None:
    plan = plan_of(SIX, baseline_faults=1)
    runs = [ran("baseline", 0, FAULT)]
    runs += [ran("moe-backend=marlin", 0, NEVER_READY), ran("moe-backend=marlin", 1, INCONCLUSIVE)]
    assert state(plan, runs)["moe-backend=marlin"] == UNUSABLE


def test_a_host_side_death_ends_the_exposure_without_an_event() -> None:
    plan = plan_of(SIX, baseline_faults=3)
    runs = [ran("baseline", n, FAULT) for n in range(3)] + [ran("moe-backend=marlin", 0, HOST_DEATH, 50)]
    one = next(s for s in standings(plan, runs) if s.arm.name == "moe-backend=marlin")
    assert (one.tally.events, one.tally.exposure) == (0, 50)


def test_a_baseline_that_never_faults_ends_the_sweep() -> None:
    plan = plan_of(SIX, baseline_faults=3, max_baseline_runs=4, run_exposure=1000)
    world = World(plan, {}, 1).go()
    assert [run.arm for run in world.runs] == ["baseline"] * 4
    assert state(plan, world.runs)["baseline"] == SPENT


def test_a_baseline_that_never_starts_ends_the_sweep_at_once() -> None:
    plan = plan_of(SIX)
    runs = [ran("baseline", 0, NEVER_READY), ran("baseline", 1, NEVER_READY)]
    assert next_tasks(plan, runs) == []


def test_a_baseline_whose_own_levers_do_not_take_ends_the_sweep_at_once() -> None:
    plan = plan_of(SIX)
    assert next_tasks(plan, [ran("baseline", 0, NOT_APPLIED)]) == []


def test_the_total_time_is_a_limit() -> None:
    plan = plan_of(SIX, total_for=3600.0)
    assert next_tasks(plan, [ran("baseline", 0, CLEAN, 3_600_001)]) == []


def test_several_slots_are_filled_with_different_work() -> None:
    plan = plan_of(SIX, baseline_faults=3)
    runs = [ran("baseline", n, FAULT) for n in range(3)]
    tasks = next_tasks(plan, runs, [], 4)
    assert len(tasks) == 4
    assert len({(task.arm, task.number) for task in tasks}) == 4
    assert Counter(task.arm for task in tasks)["baseline"] <= 2
    assert next_tasks(plan, runs, tasks, 4) == []


def test_in_the_beginning_no_more_baselines_run_at_a_time_than_faults_are_missing() -> None:
    plan = plan_of(SIX, baseline_faults=2)
    assert [task.number for task in next_tasks(plan, [], [], 8)] == [0, 1]


@pytest.mark.parametrize("first_bad", range(1, 9))
def test_bisection_finds_the_first_version_that_faults(first_bad: int) -> None:
    plan = plan_of(VERSIONS, baseline_faults=4)
    rates = {f"cudnn={n}": (1e-3 if n > first_bad else 0.0) for n in range(1, 10)}
    world = World(plan, rates, first_bad).go()
    low, high, more = bisected(standings(plan, world.runs))
    assert (low, high, more) == (f"cudnn={first_bad}", f"cudnn={first_bad + 1}", None)
    tested = {run.arm for run in world.runs} - {"cudnn=9"}
    assert len(tested) <= 1 + 3


def test_bisection_goes_round_a_version_that_does_not_start() -> None:
    plan = plan_of(VERSIONS, baseline_faults=3)
    rates = {f"cudnn={n}": (1e-3 if n > 4 else 0.0) for n in range(1, 10)}

    class Broken(World):
        def make(self, task: Task) -> ArmRun:
            if task.arm == "cudnn=5":
                return ran(task.arm, task.number, NEVER_READY)
            return super().make(task)

    world = Broken(plan, rates, 5).go()
    assert bisected(standings(plan, world.runs)) == ("cudnn=4", "cudnn=6", None)


def test_bisection_stops_when_the_good_end_is_not_good() -> None:
    plan = plan_of(VERSIONS, baseline_faults=3)
    world = World(plan, {f"cudnn={n}": 1e-3 for n in range(1, 10)}, 1).go()
    assert bisected(standings(plan, world.runs)) == (None, "cudnn=1", None)


def test_the_same_runs_always_lead_to_the_same_next_step() -> None:
    plan = plan_of(SIX, baseline_faults=3)
    world = World(plan, dict.fromkeys((arm.name for arm in plan.arms), 1e-3), 11).go()
    for at in range(len(world.runs)):
        (task,) = next_tasks(plan, world.runs[:at])
        assert (task.arm, task.number) == (world.runs[at].arm, world.runs[at].number)


@pytest.mark.parametrize("interleave", [1, 2])
def test_sweeps_in_which_no_lever_matters_name_one_no_oftener_than_the_level(interleave: int) -> None:
    """The schedule looks at the counts between runs; this is what that does to false claims."""
    plan = plan_of(SIX, interleave=interleave, baseline_faults=4)
    rates = dict.fromkeys((arm.name for arm in plan.arms), 1e-3)
    sweeps, wrong = 300, 0
    for seed in range(sweeps):
        world = World(plan, rates, seed).go()
        keys = judge(plan.arms, world.runs, level=plan.budget.level).keys
        wrong += any(item.reading == "evidence" for item in keys[0].comparisons)
    assert wrong <= 0.05 * sweeps + 3 * (sweeps * 0.05 * 0.95) ** 0.5


def test_sweeps_with_two_levers_that_matter_name_exactly_those() -> None:
    plan = plan_of(SIX, baseline_faults=5)
    guilty = {"cudagraph-mode=NONE", "moe-backend=marlin"}
    rates = {arm.name: (0.0 if arm.name in guilty else 1e-3) for arm in plan.arms}
    exact = 0
    for seed in range(100):
        world = World(plan, rates, seed).go()
        named = {
            item.arm
            for item in judge(plan.arms, world.runs).keys[0].comparisons
            if item.reading == "evidence"
        }
        assert guilty <= named or not named
        exact += named == guilty
    assert exact >= 90


def test_a_fault_whose_steps_were_not_told_counts_its_time_at_the_speed_of_the_others() -> None:
    sweep_plan = read_plan("[levers]\nmoe-backend = ['marlin']\n", "p.toml", command=["x"])
    told = ArmRun("baseline", 0, "fault", Exposure(900, 0.5), "k")
    untold = ArmRun("baseline", 1, "fault", Exposure(None, 0.1), "k")
    assert tally(sweep_plan, [told, untold], "baseline", "k").exposure == pytest.approx(1080)
    assert tally(sweep_plan, [untold], "baseline", "k").exposure == 0.0
