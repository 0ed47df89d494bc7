"""What the record of a run says about its process: arguments, times, versions, Xid events."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from crashlab import facts
from crashlab.facts import EnvFact
from crashlab.logs.hardware import CrashedProcess, epoch
from crashlab.logs.xid_table import kind_of
from crashlab.rundir.lines import finite
from crashlab.rundir.reader import Event, RunFolder

_TELLING = ("dump", "finding", "hang", "xid")
_BEFORE_FAILURE = 30.0
"""Seconds: the kernel log has a fault before the host's first word of it, a dump of gigabytes long before."""
_AFTER_END = 60.0
"""Seconds: the driver tears a dead process down after it is gone."""
# Recorded keys that no catalogue entry asks for under this name.
_HIDDEN = ("cudnn_parts", "cuda_debugger")


def suspect_attempt(run: RunFolder) -> int:
    """The first attempt with something to explain, else the last."""
    for attempt in run.attempts:
        events = own_events(run, attempt)
        if any(event.kind in _TELLING for event in events) or signal_of(events) is not None:
            return attempt
    return run.attempts[-1]


def last(events: Iterable[Event], kind: str) -> Event | None:
    """The last event of a kind."""
    found = None
    for event in events:
        if event.kind == kind:
            found = event
    return found


def signal_of(events: Iterable[Event]) -> str | None:
    """The signal that ended the command, SIGABRT say, unless it was ended by us or on request."""
    ended = last(events, "ended")
    # What outlived the command was ended by us; the command itself had ended before.
    own = ended is not None and ended.text("ended_by") in (None, "outlived")
    return ended.text("signal") if ended is not None and own else None


def run_of(run: RunFolder, attempt: int, outcome: str) -> facts.Run:
    """The run as the report tells it."""
    events = run.of(attempt)
    argv = run.info.get("argv")
    started, ended = last(events, "started"), last(events, "ended")
    hours = None
    if started is not None and events[-1].at is not None and started.at is not None:
        hours = round(max(0.0, events[-1].at - started.at) / 3600, 6)
    return facts.Run(
        argv=tuple(str(part) for part in argv) if isinstance(argv, list) else (),
        started=started.time if started is not None else None,
        ended=ended.time if ended is not None else None,
        exposure={"hours": hours} if hours is not None else None,
        outcome=outcome,
        exit_code=ended.number("exit_code") if ended is not None else None,
        signal=ended.text("signal") if ended is not None else None,
    )


def xids_of(run: RunFolder, attempt: int) -> tuple[facts.XidEvent, ...]:
    """Xid events that were heard live; used where no kernel log was readable."""
    out = []
    for event in own_events(run, attempt):
        code = event.number("code")
        if event.kind == "xid" and code is not None:
            kind = kind_of(code)
            out.append(
                facts.XidEvent(
                    code,
                    kind.meaning if kind is not None else None,
                    event.time,
                    event.number("pid"),
                    pci=event.text("pci"),
                    text=event.text("text"),
                )
            )
    return tuple(out)


def process_of(run: RunFolder, attempt: int) -> CrashedProcess:
    """Whose lines of the kernel log are this run's: its processes, from its start to a minute after its end."""
    events = run.of(attempt)
    times = [seconds for e in events if (seconds := epoch(e.time)) is not None]
    failed = [
        seconds
        for e in events
        if e.kind in _TELLING and e.kind != "xid" and (seconds := epoch(e.time)) is not None
    ]
    machine = run.info.get("machine")
    facts_of = machine if isinstance(machine, dict) else {}
    end = max(times) + _AFTER_END if times else 0.0
    return CrashedProcess(
        pids_of(events),
        (min(times), end) if times else None,
        boot_time=finite(facts_of.get("boot_time")),
        moment=(min(failed) - _BEFORE_FAILURE, end) if failed else None,
        kernel_pids=facts_of.get("kernel_pids") is True,
    )


def pids_of(events: Iterable[Event]) -> tuple[int, ...]:
    """The run's own processes, in order of appearance: the kernel log names others, too."""
    numbers = (event.number("pid") for event in events if event.kind != "xid")
    return tuple(dict.fromkeys(pid for pid in numbers if pid is not None))


def own_events(run: RunFolder, attempt: int) -> tuple[Event, ...]:
    """The attempt's events without the Xid lines of processes that are surely others'."""
    events, process = run.of(attempt), process_of(run, attempt)
    if not process.kernel_pids:
        return events
    own = {None, *process.pids}
    return tuple(e for e in events if e.kind != "xid" or e.number("pid") in own)


def environment_of(run: RunFolder, attempt: int, dumps: Iterable[str]) -> dict[str, EnvFact]:
    """Versions of what the worker had loaded; the process that wrote a dump comes first."""
    events = run.of(attempt)
    out: dict[str, EnvFact] = {}
    asked = _asked(events)
    names = {os.path.basename(dump) for dump in dumps}
    culprits = {
        event.number("pid")
        for event in events
        if event.kind == "dump" and os.path.basename(event.text("path") or "") in names
    }
    samples = [event for event in events if event.kind == "libraries"]
    # Later samples know more; those of the culprit win.
    for event in sorted(samples, key=lambda e: e.number("pid") in culprits, reverse=True):
        for row in _rows(event.fields.get("libraries")):
            key, path = row.get("key"), row.get("path")
            if not isinstance(key, str) or not isinstance(path, str) or key in _HIDDEN:
                continue
            version = asked.get(path) or row.get("version")
            if isinstance(version, str) and version:
                how = (
                    "loaded by"
                    if row.get("source") != "installed beside"
                    else "installed beside the libraries of"
                )
                out.setdefault(
                    key, EnvFact(version, f"{how} process {event.number('pid')}: {os.path.basename(path)}")
                )
    for event in run.events:
        cuda = event.text("torch_cuda") if event.kind == "versions" else None
        if cuda is not None:
            out.setdefault("torch_cuda", EnvFact(cuda, "version.py of the loaded torch"))
        if event.kind == "gpu":
            for key, field in (("gpu", "name"), ("driver", "driver"), ("cuda_driver", "cuda_driver")):
                if (value := event.text(field)) is not None:
                    out.setdefault(key, EnvFact(value, "NVML"))
    machine = run.info.get("machine")
    driver = machine.get("driver") if isinstance(machine, dict) else None
    if isinstance(driver, str):
        out.setdefault("driver", EnvFact(driver, "kernel module"))
    return out


def _asked(events: Iterable[Event]) -> dict[str, str]:
    out = {}
    for event in events:
        if event.kind == "versions":
            for row in _rows(event.fields.get("libraries")):
                path, version = row.get("path"), row.get("version")
                if isinstance(path, str) and isinstance(version, str):
                    out[path] = version
    return out


def _rows(value: object) -> list[dict[str, Any]]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
