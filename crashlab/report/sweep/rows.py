"""What every form of a sweep shows: arms with requested and effective configuration, and counts as words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from crashlab.postmortem.words import counted
from crashlab.report.kinds import spoken
from crashlab.sweep import facts
from crashlab.sweep.verdict import words

_VALUES = 4


class ConfigRow(NamedTuple):
    """One lever of one arm: what was asked for, what it was, whether that was seen, and where."""

    lever: str
    requested: str
    effective: str
    took: str
    source: str | None


class ArmRow(NamedTuple):
    """One arm. ``outcomes``: ``3 fault, 1 clean``. ``state``: fault, hang, fine or none, for a colour."""

    name: str
    baseline: bool
    runs: int
    outcomes: str
    exposure: str
    state: str
    config: tuple[ConfigRow, ...]
    notes: tuple[str, ...]


def arm_rows(result: facts.SweepResult) -> list[ArmRow]:
    """One row for each arm of the plan, run or not."""
    by_arm: dict[str, list[facts.ArmRun]] = {}
    for run in result.runs:
        by_arm.setdefault(run.arm, []).append(run)
    return [_row(arm, by_arm.get(arm.name, [])) for arm in result.arms]


def _row(arm: facts.Arm, runs: Sequence[facts.ArmRun]) -> ArmRow:
    outcomes = Counter(run.outcome for run in runs)
    said = ", ".join(f"{number} {spoken(outcome)}" for outcome, number in outcomes.most_common())
    return ArmRow(
        arm.name,
        arm.is_baseline,
        len(runs),
        said or "not run yet",
        exposure(runs),
        _state(outcomes),
        tuple(_config(arm, runs)),
        tuple(dict.fromkeys(run.note for run in runs if run.note))[:_VALUES],
    )


def exposure(runs: Sequence[facts.ArmRun]) -> str:
    """Steps, hours and requests of these runs together; a dash where none is known."""
    out = []
    for unit in facts.UNITS:
        known = [value for run in runs if (value := getattr(run.exposure, unit)) is not None]
        if known:
            short = "" if len(known) == len(runs) else f" in {len(known)} of {len(runs)} runs"
            out.append(words.amount(float(min(sum(known), 10**15)), unit) + short)
    return ", ".join(out) or "–"


def _state(outcomes: Counter[str]) -> str:
    if any(outcome in outcomes for outcome in facts.EVENTS):
        return "fault"
    if any(outcome != facts.CLEAN for outcome in outcomes):
        return "hang"
    return "fine" if outcomes else "none"


def _config(arm: facts.Arm, runs: Sequence[facts.ArmRun]) -> list[ConfigRow]:
    """Levers that the arm names or that a run asked for or showed, in that order."""
    asked = {item.lever: item.value for run in runs for item in run.requested}
    asked.update({item.lever: item.value for item in arm.levers})
    seen: dict[str, list[facts.Effective]] = {}
    for run in runs:
        for item in run.effective:
            seen.setdefault(item.lever, []).append(item)
    return [
        _config_row(lever, lever in asked, asked.get(lever), seen.get(lever, []))
        for lever in dict.fromkeys((*asked, *seen))
    ]


def _config_row(lever: str, asked: bool, value: str | None, seen: Sequence[facts.Effective]) -> ConfigRow:
    values = list(dict.fromkeys(item.value for item in seen if item.value is not None))
    sources = list(dict.fromkeys(item.source for item in seen if item.source))
    took = {item.took for item in seen}
    state = (
        "did not take" if False in took
        else "took" if took == {True}
        else "took in some runs, not seen in others" if True in took
        else "read" if values and not asked
        else "not seen"
    )  # fmt: skip
    return ConfigRow(
        lever,
        "not named" if not asked else "unset" if value is None else value,
        ", ".join(values[:_VALUES]) + (", …" if len(values) > _VALUES else "") if values else "not known",
        state,
        ", ".join(sources[:_VALUES]) or None,
    )


def label(name: str, baseline: bool) -> str:
    """The arm's name, with a word for the baseline unless it says so itself."""
    return f"{name} (baseline)" if baseline and name != "baseline" else name


class CountRow(NamedTuple):
    """One arm's rate for one key, as words."""

    arm: str
    events: str
    exposure: str
    rate: str
    limits: str


def count_rows(entry: facts.KeyFindings) -> list[CountRow]:
    """Rates with exact limits; for an arm without an event the upper bound."""
    out = []
    for count in entry.counts:
        unit = count.unit
        limits = "–"
        if count.high is not None:
            high = words.rate(count.high, unit)
            limits = f"below {high}" if count.low is None else f"{words.rate(count.low, unit)} to {high}"
        rate = "–" if count.rate is None else words.rate(count.rate, unit)
        out.append(CountRow(count.arm, str(count.events), words.amount(count.exposure, unit), rate, limits))
    return out


def about(result: facts.SweepResult) -> list[tuple[str, str]]:
    """Label and value: plan, time, size, seeds, machines."""
    arms, runs = len(result.arms), len(result.runs)
    rows = [
        ("Plan", result.plan),
        ("Written", result.created or ""),
        ("Size", f"{counted(arms, 'arm')}, {counted(runs, 'run')}"),
        ("State", {True: "finished", False: "not finished", None: ""}[result.finished]),
        ("Seeds", ", ".join(map(str, result.seeds[:20]))),
    ]
    if result.findings is not None:
        turns = {True: "yes", False: "no", None: "not known"}[result.findings.interleaved]
        rows.append(("Arms tried", str(result.findings.arms_tried)))
        rows.append(("Baseline in turns", turns))
    for machine in result.machines[:50]:
        rows.append((f"Machine {machine.name}", _machine(machine)))
    rows += [("Not read", problem) for problem in result.problems[:_VALUES]]
    return [(label, value) for label, value in rows if value]


def _machine(machine: facts.Machine) -> str:
    """What is known of it. A dump may be a recording of another machine, so its facts are kept apart."""
    known = list(machine.facts.items())[:12]
    own = ", ".join(f"{name} {fact.value}" for name, fact in known if not fact.source.startswith("dump"))
    dumped = ", ".join(f"{name} {fact.value}" for name, fact in known if fact.source.startswith("dump"))
    return "; ".join(part for part in (own, f"from its GPU dumps: {dumped}" if dumped else "") if part)
