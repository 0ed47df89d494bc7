"""How much a sweep may spend: what exposure is counted in, how many faults and runs, how long."""

from __future__ import annotations

from typing import NamedTuple

from crashlab.sweep.facts import HOURS, STEPS, UNITS
from crashlab.sweep.plan.words import BISECT, RUN, SOAK
from crashlab.sweep.tomltext import Table


class Budget(NamedTuple):
    """How much is spent. ``unit``: what exposure is counted in. Times in seconds.

    ``baseline_faults``: collected before any lever is judged. ``run_exposure``: most of one run, in
    ``unit``. ``run_for``: longest run. ``max_runs``: of one arm; ``max_baseline_runs``. ``arm_faults``: so many
    faults of the key and an arm is called unchanged. ``total_for``: of all runs together. ``fold``: by
    how much a lever must lower the rate to be worth finding, for stopping early.
    """

    unit: str = STEPS
    level: float = 0.05
    baseline_faults: int = 5
    arm_faults: int = 3
    run_exposure: float | None = None
    run_for: float = 7200.0
    max_runs: int = 12
    max_baseline_runs: int = 60
    total_for: float | None = None
    interleave: int = 1
    fold: float = 8.0


def read_budget(table: Table, kind: str, mode: str) -> Budget:
    """The table [budget]. Raises UsageError."""
    default = Budget()
    unit = table.text("unit") or (STEPS if mode == SOAK else HOURS)
    if unit not in UNITS:
        raise table.wrong("unit", f"one of {', '.join(UNITS)}")
    if mode == RUN and unit != HOURS:
        raise table.wrong("unit", f'{HOURS!r} with mode = "run": a program without load has no steps')

    level, fold = table.number("level"), table.number("fold", 1.0)
    if level is not None and level >= 0.5:
        raise table.wrong("level", "a probability below 0.5")
    run_for = table.duration("run-for")
    budget = Budget(
        unit,
        level or default.level,
        table.whole("baseline-faults", 1, 1000) or default.baseline_faults,
        table.whole("arm-faults", 1, 1000) or (1 if kind == BISECT else default.arm_faults),
        table.number("run-exposure"),
        default.run_for if run_for is None else run_for,
        table.whole("max-runs", 1) or default.max_runs,
        table.whole("max-baseline-runs", 1) or default.max_baseline_runs,
        table.duration("total-for"),
        default.interleave if (every := table.whole("interleave")) is None else every,
        fold or default.fold,
    )
    table.done()
    return budget
