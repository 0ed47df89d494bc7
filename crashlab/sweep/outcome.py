"""What a finished run directory says about its arm: outcome, key, exposure, what the levers really were."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from crashlab.rundir import layout
from crashlab.rundir.reader import RunFolder, open_run
from crashlab.sweep.facts import (
    CLEAN,
    EVENTS,
    FAULT,
    GARBAGE,
    HOST_DEATH,
    INCONCLUSIVE,
    NEVER_READY,
    NOT_APPLIED,
    STALL,
    ArmRun,
    Effective,
    Exposure,
)
from crashlab.sweep.job import Job
from crashlab.sweep.plan import RUN
from crashlab.sweep.proof import Witness, observed, text_lines, verify
from crashlab.sweep.setting import Launch, present

_BY_KIND = {
    "gpu-fault": FAULT,
    "device-assert": FAULT,
    "trap": FAULT,
    "hang": STALL,
    "stall": STALL,
    "garbage": GARBAGE,
    "no-fault": CLEAN,
    "never-ready": NEVER_READY,
    "host-death": HOST_DEATH,
}
INTERRUPTED = "interrupted"
"""The note of a run that somebody ended: it is made again."""
_OUTPUT = 8 << 20
_JSON = 64 << 20


def finished(rundir: str, mode: str) -> bool:
    """Whether a run directory is whole: written to its end, with a report that can be read.

    ``crashlab run`` writes a report only when it found something.
    """
    if not layout.is_run(rundir) or not open_run(rundir).ended:
        return False
    path = os.path.join(rundir, layout.REPORT)
    return load_json(path) is not None or (mode == RUN and not os.path.exists(path))


def load_json(path: str) -> dict[str, Any] | None:
    """A JSON object from a file, None if it holds none."""
    try:
        with open(path, "rb") as file:
            value = json.loads(file.read(_JSON))
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def refused(job: Job, rundir: str, environment: Mapping[str, str]) -> bool | None:
    """While it runs: whether the server's own words say that a lever did not take. None: it is not ready yet.

    Silence is no refusal: /server_info and the loaded libraries are known later.
    """
    if not layout.is_run(rundir):
        return None
    run = open_run(rundir)
    if not any(event.kind == "soak-ready" for event in run.events):
        return None
    asked = {check.lever.id for check in job.checks if check.asked}
    witness = _witness(job, run, {}, environment)
    return any(one.took is False and one.lever in asked for one in _effective(job, witness, environment))


def result_of(job: Job, rundir: str, environment: Mapping[str, str], machine: str | None) -> ArmRun:
    """The run as the sweep counts it. ``environment``: as the server was started with it."""
    run = open_run(rundir)
    report = load_json(os.path.join(rundir, layout.REPORT)) or {}
    verdict = _dict(
        report.get("verdict") or {"kind": "no-fault"} if job.mode == RUN else report.get("verdict")
    )
    outcome = _BY_KIND.get(str(verdict.get("kind")), INCONCLUSIVE)
    soak = next((event for event in reversed(run.events) if event.kind == "soak-outcome"), None)
    note = verdict.get("headline")
    if soak is not None and soak.fields.get("outcome") == "interrupted" and outcome in (CLEAN, INCONCLUSIVE):
        outcome, note = INCONCLUSIVE, INTERRUPTED
    ready, hours = _under_load(run, faulted=outcome == FAULT)
    witness = _witness(job, run, report, environment)
    effective = tuple(_effective(job, witness, environment))
    doubt = _doubt(job, effective)
    if doubt is not None and outcome != NEVER_READY and (ready or soak is None):
        note = f"{doubt} (the run itself: {outcome})"
        outcome = NOT_APPLIED
    key = _dict(report.get("signature_key")).get("coarse") if outcome in EVENTS else None
    return ArmRun(
        arm=job.arm,
        number=job.number,
        outcome=outcome,
        exposure=_exposure(report, hours if job.mode != RUN else _lifetime(run)),
        key=key if isinstance(key, str) else None,
        time_to_event_hours=hours if outcome in EVENTS and ready else None,
        at_startup=outcome in EVENTS and soak is not None and not ready,
        requested=job.requested,
        effective=effective,
        rundir=job.rundir,
        note=note[:500] if isinstance(note, str) else None,
        started_utc=_text(_dict(report.get("run")).get("started")),
        machine=machine,
    )


def _effective(job: Job, witness: Witness, environment: Mapping[str, str]) -> list[Effective]:
    launch = Launch(job.argv, job.variables)
    out = []
    for check in job.checks:
        if check.asked:
            given = present(launch, environment, check.way)
            out.append(verify(check.lever, check.way, check.value, given, witness))
        else:
            out.append(observed(check.lever, check.way, witness))
    return out


def _doubt(job: Job, effective: tuple[Effective, ...]) -> str | None:
    """Why a lever of this arm does not count as turned, in words."""
    asked = {check.lever.id: check.value for check in job.checks if check.asked}
    for one in effective:
        if one.lever not in asked or one.took:
            continue
        wanted = f"{one.lever}={'unset' if asked[one.lever] is None else asked[one.lever]}"
        if one.took is None:
            return f"{wanted}: nothing in log, /server_info or loaded libraries shows that it took"
        shown = f"it is {one.value}, " if one.value is not None else ""
        return f"{wanted} did not take: {shown}{one.source}"
    return None


def _witness(job: Job, run: RunFolder, report: Mapping[str, Any], environment: Mapping[str, str]) -> Witness:
    raw = bytearray()
    attempt = run.attempts[-1]
    for segment in run.segments:
        if segment.attempt == attempt and len(raw) < _OUTPUT:
            try:
                with open(segment.path, "rb") as file:
                    raw += file.read(_OUTPUT - len(raw)) + b"\n"
            except OSError:
                continue
    facts = _dict(report.get("environment"))
    libraries = {
        name: value
        for name, fact in facts.items()
        if isinstance(fact, dict) and isinstance(value := fact.get("value"), str)
    }
    info = load_json(server_info_file(job.folder, job.run))
    return Witness(text_lines(bytes(raw)), info, libraries, environment)


def server_info_file(folder: str, run: int) -> str:
    """Where the answer of /server_info is kept."""
    return os.path.join(folder, "side", f"{run:04d}.server_info.json")


def _under_load(run: RunFolder, *, faulted: bool) -> tuple[bool, float | None]:
    """(was the server ready, hours under load until the fault or the end), from the record's own clock."""
    ready = next((e.at for e in run.events if e.kind == "soak-ready" and e.at is not None), None)
    if ready is None:
        return False, None
    ends = [e.at for e in run.events if e.kind == "soak-ending" and e.at is not None]
    if faulted:
        ends += [e.at for e in run.events if e.kind == "dump" and e.at is not None and e.at >= ready]
    return True, (min(ends) - ready) / 3600 if ends else None


def _lifetime(run: RunFolder) -> float | None:
    """Without load: hours from start to end."""
    began = next((e.at for e in run.events if e.kind == "started"), None)
    ended = next((e.at for e in run.events if e.kind in ("ended", "run-ended")), None)
    return None if began is None or ended is None else max(0.0, ended - began) / 3600


def _exposure(report: Mapping[str, Any], hours: float | None) -> Exposure:
    given = _dict(_dict(report.get("run")).get("exposure"))

    def number(name: str) -> int | None:
        value = given.get(name)
        return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    recorded = given.get("hours")
    if hours is None and isinstance(recorded, (int, float)) and not isinstance(recorded, bool):
        hours = float(recorded)
    return Exposure(number("engine_steps"), hours, number("requests"), number("tokens"))


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
