"""Sweep results for tests: a small vocabulary to write runs down, the worked cases, and a hostile one."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from crashlab.facts import EnvFact
from crashlab.sweep.facts import (
    Arm,
    ArmRun,
    Effective,
    Exposure,
    Machine,
    Setting,
    SweepResult,
)

KEY = "clk1:WARP_ILLEGAL_ADDRESS:stg:moe_align"


def fault(arm: str, hours: float, number: int = 0, key: str | None = KEY, **more: object) -> ArmRun:
    """A run that faulted after so many hours under load."""
    exposure = Exposure(hours=hours, steps=round(hours * 211_290))
    return ArmRun(arm, number, "fault", exposure, key, time_to_event_hours=hours)._replace(**more)  # type: ignore[arg-type]


def clean(arm: str, hours: float, number: int = 0, **more: object) -> ArmRun:
    """A run that ended by time."""
    exposure = Exposure(hours=hours, steps=round(hours * 211_290))
    return ArmRun(arm, number, "clean", exposure)._replace(**more)  # type: ignore[arg-type]


def hours_only(runs: Iterable[ArmRun]) -> list[ArmRun]:
    """The same runs of a server that does not tell its steps."""
    return [run._replace(exposure=run.exposure._replace(steps=None)) for run in runs]


def arm(name: str, *, baseline: bool = False, **levers: str | None) -> Arm:
    """An arm by keywords."""
    return Arm(name, tuple(Setting(lever, value) for lever, value in levers.items()), baseline)


TWO_ARMS = (arm("baseline", baseline=True, graphs="FULL"), arm("no graphs", graphs="NONE"))


def field_case(crashes: int) -> list[ArmRun]:
    """A crash at about 23 minutes in every load test, then 50 clean minutes after turning a lever."""
    minutes = (23.0, 22.4, 23.6)[:crashes]
    return hours_only(
        [*(fault("baseline", m / 60, i) for i, m in enumerate(minutes)), clean("no graphs", 50 / 60)]
    )


def matrix(levers: str, guilty: str, runs: int = 2) -> tuple[list[Arm], list[ArmRun]]:
    """All combinations of on and off; a run faults after 0.3 h where all guilty levers are on."""
    arms, out = [], []
    for number, values in enumerate(itertools.product(("on", "off"), repeat=len(levers))):
        settings = dict(zip(levers, values, strict=True))
        name = f"m{number}"
        arms.append(arm(name, baseline=number == 0, **settings))
        bad = all(settings[lever] == "on" for lever in guilty)
        for i in range(runs):
            out.append(fault(name, 0.3 + 0.01 * number + 0.1 * i, i) if bad else clean(name, 1.0, i))
    return arms, hours_only(out)


def worked() -> SweepResult:
    """One factor, five levers: one helps, one is not applied, one never came up, one is undecided, one is worse."""
    arms = (
        arm("baseline", baseline=True, graphs="FULL", moe=None),
        arm("graphs off", graphs="NONE"),
        arm("moe triton", moe="triton"),
        arm("deep gemm off", deep_gemm="0"),
        arm("eager", eager="1"),
        arm("small batch", max_num_seqs="8"),
        arm("not reached", kv="fp8"),
    )
    took = (Effective("graphs", "FULL", "log line", True),)
    runs = [
        fault("baseline", 0.31, 0, effective=took, started_utc="2026-01-01T00:00:00Z"),
        clean("graphs off", 8.0, 0, started_utc="2026-01-01T01:00:00Z"),
        fault("baseline", 1.9, 1, effective=took, started_utc="2026-01-01T07:00:00Z"),
        clean("moe triton", 2.0, 0, started_utc="2026-01-01T09:00:00Z"),
        fault("baseline", 0.72, 2, effective=took, started_utc="2026-01-01T11:00:00Z"),
        clean("deep gemm off", 2.0, 0, outcome="not_applied", started_utc="2026-01-01T12:00:00Z",
              effective=(Effective("deep_gemm", "1", "/server_info", False),), note="the variable was ignored"),
        fault("baseline", 1.05, 3, effective=took, started_utc="2026-01-01T14:00:00Z"),
        ArmRun("eager", 0, "never-ready", note="out of memory", started_utc="2026-01-01T15:00:00Z"),
        fault("small batch", 0.2, 0, started_utc="2026-01-01T16:00:00Z"),
        fault("small batch", 0.3, 1, key="clk1:another", started_utc="2026-01-01T17:00:00Z"),
        fault("baseline", 0.4, 4, key=None, at_startup=True, started_utc="2026-01-01T15:30:00Z"),
    ]  # fmt: skip
    machine = Machine("node-a", {"gpu": EnvFact("H200", "nvml"), "driver": EnvFact("580.65", "nvml")})
    return SweepResult(
        "levers.toml", arms, tuple(runs), (11, 12), (machine,), "2026-01-02T00:00:00Z", finished=False
    )


def hostile(text: str) -> SweepResult:
    """A result in which every string is ``text``, but for the words that decide what is counted."""
    levers = (Setting(text, text), Setting(f"{text}2", None))
    seen = (Effective(text, text, text, False), Effective(f"{text}3", None, text, None))
    arms = (Arm(text, levers, True), Arm(f"{text}b", (Setting(text, f"{text}c"),)), Arm(f"{text}d", levers))
    more = {
        "requested": levers,
        "effective": seen,
        "rundir": text,
        "note": text,
        "started_utc": text,
        "machine": text,
    }
    runs = (
        *(fault(text, 0.5 + i, i, key=text, **more) for i in range(3)),
        clean(f"{text}b", 2.0, 0, **more),
        clean(f"{text}b", 2.0, 1, outcome="not_applied", **more),
        clean(f"{text}b", 2.0, 2, outcome=text, **more),
    )
    machine = Machine(text, {text: EnvFact(text, text)})
    return SweepResult(text, arms, runs, (1,), (machine,), text)
