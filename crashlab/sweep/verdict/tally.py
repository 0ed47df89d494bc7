"""What counts: exposure and events by arm and key, and what was left out of the count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from crashlab.stats.survival import Life
from crashlab.sweep import facts

UNKEYED = "fault without a key"
BASELINE = "baseline"
"""What a course of the baseline's own runs names as its source."""


_ABSURD = 1e15
"""More of anything was never run; a file that says so is broken."""


class Tally(NamedTuple):
    """Counted runs of the arms that could be counted, in one unit of exposure.

    ``exposure`` and ``hours`` by arm (an arm whose hours are not known is not in ``hours``); ``events`` by
    arm and key; ``keys`` the most frequent first; ``left_out`` why runs were not counted.
    """

    unit: str
    arms: tuple[facts.Arm, ...]
    runs: tuple[facts.ArmRun, ...]
    exposure: dict[str, float]
    hours: dict[str, float]
    steps: dict[str, float]
    events: dict[tuple[str, str], int]
    keys: tuple[str, ...]
    left_out: tuple[str, ...]

    def events_of(self, arms: Sequence[str], key: str) -> int:
        """Events of a key over these arms."""
        return sum(self.events.get((arm, key), 0) for arm in arms)

    def total(self, arms: Sequence[str]) -> float:
        """Exposure of these arms together."""
        return sum(self.exposure.get(arm, 0.0) for arm in arms)

    def speed(self, arm: str) -> float | None:
        """Hours for one unit of exposure in this arm; None when it cannot be told."""
        exposure, hours = self.exposure.get(arm, 0.0), self.hours.get(arm)
        return hours / exposure if hours and exposure > 0 else None


def event_key(run: facts.ArmRun) -> str | None:
    """The key a run's event is counted under; None when it ended without one."""
    if run.outcome not in facts.EVENTS:
        return None
    return run.key or (UNKEYED if run.outcome == facts.FAULT else run.outcome)


def lives(runs: Sequence[facts.ArmRun], key: str) -> list[Life]:
    """Hours under load until the event of this key; every other end is censoring. Unknown hours are left out."""
    out = []
    for run in runs:
        event = event_key(run) == key
        hours = run.exposure.hours
        if event and run.time_to_event_hours is not None:
            hours = run.time_to_event_hours
        if hours is not None and 0 < hours < _ABSURD:
            out.append(Life(hours, event))
    return out


def spans(found: Tally, arms: Sequence[str], key: str) -> list[Life]:
    """The same in the unit of the count, for these arms; zero is allowed."""
    return [
        Life(_amount(run, found.unit) or 0.0, event_key(run) == key) for run in found.runs if run.arm in arms
    ]


def tally(arms: Sequence[facts.Arm], runs: Sequence[facts.ArmRun]) -> Tally:
    """Count the runs that can be counted; the others are named in ``left_out``."""
    names = {arm.name for arm in arms}
    counted = [
        run for run in runs if run.arm in names and run.outcome in facts.COUNTED and not run.at_startup
    ]
    unit = _unit(counted)
    told = [run for run in counted if _amount(run, unit) is not None]
    exposure: dict[str, float] = {}
    for run in told:
        exposure[run.arm] = exposure.get(run.arm, 0.0) + (_amount(run, unit) or 0.0)
    events = Counter((run.arm, key) for run in told if (key := event_key(run)))
    by_key = Counter(key for run in told if (key := event_key(run)))
    return Tally(
        unit,
        tuple(arm for arm in arms if exposure.get(arm.name, 0.0) > 0),
        tuple(told),
        exposure,
        _sums(told, facts.HOURS),
        _sums(told, facts.STEPS),
        dict(events),
        tuple(sorted(by_key, key=lambda key: (-by_key[key], key))),
        tuple(_left_out(arms, runs, names, len(counted) - len(told), unit)),
    )


def _unit(runs: Sequence[facts.ArmRun]) -> str:
    """The first unit that every run has; otherwise that which most runs have."""
    having = {unit: sum(1 for run in runs if _amount(run, unit) is not None) for unit in facts.UNITS}
    for unit in facts.UNITS:
        if runs and having[unit] == len(runs) and any(_amount(run, unit) for run in runs):
            return unit
    if not runs:
        return facts.HOURS
    return max(facts.UNITS, key=lambda unit: (having[unit], -facts.UNITS.index(unit)))


def _amount(run: facts.ArmRun, unit: str) -> float | None:
    value: float | None = getattr(run.exposure, unit)
    return float(value) if value is not None and 0 <= value < _ABSURD else None


def _sums(runs: Sequence[facts.ArmRun], unit: str) -> dict[str, float]:
    """Sums by arm, for the arms of which every run tells this amount."""
    out: dict[str, float] = {}
    unknown = set()
    for run in runs:
        value = _amount(run, unit)
        if value is None:
            unknown.add(run.arm)
        else:
            out[run.arm] = out.get(run.arm, 0.0) + value
    return {arm: value for arm, value in out.items() if arm not in unknown}


def _left_out(
    arms: Sequence[facts.Arm], runs: Sequence[facts.ArmRun], names: set[str], blind: int, unit: str
) -> list[str]:
    out = []
    startup = [run for run in runs if run.at_startup and run.outcome in facts.EVENTS]
    if startup:
        out.append(
            f"{_runs(len(startup))} failed at start-up ({_where(startup)}): counted apart, no exposure"
        )
    words = {
        facts.NEVER_READY: "never became ready",
        facts.NOT_APPLIED: "did not take the lever: not applied is not the same as no effect",
        facts.INCONCLUSIVE: "ended inconclusively",
    }
    for outcome, said in words.items():
        ended = [run for run in runs if run.outcome == outcome]
        if ended:
            out.append(f"{_runs(len(ended))} {said} ({_where(ended)}): not counted")
    deaths = [run for run in runs if run.outcome == facts.HOST_DEATH]
    if deaths:
        out.append(f"{_runs(len(deaths))} died for a host-side reason ({_where(deaths)}): censored there")
    if blind:
        out.append(f"{_runs(blind)} tell no exposure in {unit}: not counted")
    strange = sum(1 for run in runs if run.arm not in names or run.outcome not in facts.OUTCOMES)
    if strange:
        out.append(
            f"{_runs(strange)} belong to no arm of the plan or ended in a way unknown here: not counted"
        )
    never = [arm.name for arm in arms if not any(run.arm == arm.name for run in runs)]
    if never:
        listed = ", ".join(never[:6]) + (", …" if len(never) > 6 else "")
        out.append(f"{len(never)} arm{'s have' if len(never) != 1 else ' has'} not been run yet: {listed}")
    return out


def _runs(number: int) -> str:
    return f"{number} run{'s' if number != 1 else ''}"


def _where(runs: Sequence[facts.ArmRun]) -> str:
    by_arm = Counter(run.arm for run in runs)
    shown = [f"{arm}: {number}" if number > 1 else arm for arm, number in list(by_arm.items())[:6]]
    return ", ".join(shown) + (", …" if len(by_arm) > 6 else "")
