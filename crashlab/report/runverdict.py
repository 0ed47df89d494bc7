"""The verdict on a run where neither a dump nor the output names a fault: hang, host death, or nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator

from crashlab import facts
from crashlab.capture.confounds import find_confounds
from crashlab.postmortem.words import counted
from crashlab.report.endedby import how
from crashlab.report.runfacts import last, pids_of, signal_of
from crashlab.rundir.reader import Event, RunFolder

_OPEN = ("inconclusive", "no-fault", "unreadable")
_NO_DUMP = "It does not mean that nothing failed on the GPU: no dump was taken."
_WHO_KILLED = (
    "It does not say who sent SIGKILL: the kernel short of memory (dmesg, the cgroup's memory.events), a container's "
    "time limit, or a person."
)


def settle(report: facts.Report, run: RunFolder, attempt: int, has_dump: bool) -> facts.Report:
    """The report with the verdict that the run's own record supports, where the evidence has none."""
    events = run.of(attempt)
    notes = _notes(run, events)
    own = list(_own_settings(events))
    if own and not has_dump and report.verdict.confidence is not None:
        level, reasons = report.verdict.confidence
        known = facts.Confidence(level, (*reasons, *own))
        report = report._replace(verdict=report.verdict._replace(confidence=known))
        own = []
    report = report._replace(provenance=(*report.provenance, *notes, *own))
    hang = _hang(events)
    if report.verdict.kind not in _OPEN:
        return report
    not_started = last(events, "not-started")
    if not_started is not None and last(events, "started") is None:
        return report._replace(verdict=_not_started(not_started))
    if hang is not None and last(events, "after-fault") is None:
        return report._replace(verdict=_stalled(report.verdict, hang, events, has_dump))
    if has_dump:
        return report
    ended = last(events, "ended")
    if signal_of(events) is not None:
        return report._replace(verdict=_killed(str(signal_of(events)), events))
    if ended is not None and report.verdict.kind == "inconclusive":
        return report._replace(verdict=_nothing(ended, events))
    return report


def _hang(events: tuple[Event, ...]) -> Event | None:
    """Why the program counts as hung. Evidence that was asked for is none of it if the program then went on to
    its own end and no dump was asked for with success (the driver ends what it dumps)."""
    found = [event for event in events if event.kind == "hang"]
    real = [event for event in found if event.fields.get("requested") is not True]
    ended = last(events, "ended")
    dumped = any(e.kind == "asked-for-dump" and e.fields.get("ok") is True for e in events)
    alone = ended is not None and ended.text("ended_by") in (None, "outlived")
    if found and not real and alone and not (dumped and signal_of(events) is not None):
        return None
    return last(real or found, "hang")


def _not_started(event: Event) -> facts.Verdict:
    why = event.text("why")
    return facts.Verdict(
        "inconclusive",
        "The program could not be started" + (f": {why}" if why else ""),
        confidence=facts.Confidence("high", ("the run's record",)),
    )


def _stalled(old: facts.Verdict, hang: Event, events: tuple[Event, ...], has_dump: bool) -> facts.Verdict:
    reason = hang.text("reason") or "no reason recorded"
    asked = [event for event in events if event.kind == "asked-for-dump"]
    if has_dump:
        detail = "the GPU dump shows no kernel at work"
    elif any(event.fields.get("ok") is True for event in asked):
        detail = "a GPU dump was asked for and did not come"
    else:
        detail = "no GPU dump could be asked for"
    stacks = sum(1 for event in events if event.kind == "host-stack" and event.text("file"))
    reasons = [
        f"the run's record: {reason}",
        f"host stacks of {counted(stacks, 'process', 'processes')} are in host/",
    ]
    return old._replace(
        kind="stall",
        headline=f"The program stalled: {reason}; {detail}",
        confidence=facts.Confidence("medium", tuple(reasons)),
        does_not_mean=(
            "It does not mean that the GPU hung: the host may have waited for something else.",
            *(() if has_dump else (_NO_DUMP,)),
        ),
    )


def _killed(name: str, events: tuple[Event, ...]) -> facts.Verdict:
    own = {None, *pids_of(events)}
    number = next((e.number("code") for e in events if e.kind == "xid" and e.number("pid") in own), None)
    also = f"; the driver reported Xid {number}" if number is not None else ""
    return facts.Verdict(
        "host-death",
        f"The program was ended by {name}{also}; nothing tells of a GPU fault"
        if not also
        else f"The program was ended by {name}{also}",
        confidence=facts.Confidence(
            "medium", ("the exit status of the command", "no dump and no error line")
        ),
        does_not_mean=(_NO_DUMP, *((_WHO_KILLED,) if name == "SIGKILL" else ())),
    )


def _nothing(ended: Event, events: tuple[Event, ...]) -> facts.Verdict:
    return facts.Verdict(
        "no-fault",
        f"No GPU fault was seen; the program {how(ended, events)}",
        confidence=facts.Confidence(
            "medium", ("no dump was written, and neither output nor kernel log tells of a fault",)
        ),
        does_not_mean=("It does not mean that the program is free of faults: this run showed none.",),
    )


def _own_settings(events: tuple[Event, ...]) -> Iterator[str]:
    """Variables that a process of the run had by itself and that spoil the evidence."""
    told = set()
    for event in events:
        variables = event.fields.get("variables") if event.kind == "libraries" else None
        if not isinstance(variables, dict):
            continue
        plain = {str(name): str(value) for name, value in variables.items()}
        for found in find_confounds(plain):
            name = event.text("name") or "a process"
            who = f"{name} (pid {event.number('pid')})" if event.number("pid") is not None else name
            text = f"{who} ran with {found.name}={found.value}: {found.why}"
            if text not in told:
                told.add(text)
                yield text


def _notes(run: RunFolder, events: tuple[Event, ...]) -> list[str]:
    """What a reader of the report should know about how the evidence was taken."""
    out = []
    ended = last(events, "ended")
    if ended is not None:
        out.append(f"The command {how(ended, events)}.")
    elif last(events, "started") is not None:
        out.append("How the command ended was not recorded.")
    confounds = run.info.get("confounds")
    for confound in confounds if isinstance(confounds, list) else ():
        if isinstance(confound, dict):
            out.append(f"{confound.get('name')}={confound.get('value')} was set: {confound.get('why')}.")
    stacks = sorted({e.text("file") or "" for e in events if e.kind == "host-stack"} - {""})
    if stacks:
        shown = ", ".join(os.path.basename(one) for one in stacks[:3])
        out.append(
            f"Host stacks: {counted(len(stacks), 'file')} in host/ ({shown}{', …' if len(stacks) > 3 else ''})."
        )
    out += _snapshots(events)
    for event in events:
        if event.kind == "duplicate-libraries" and (what := event.text("what")):
            out.append(f"{what}.")
    return out


def _snapshots(events: tuple[Event, ...]) -> Iterator[str]:
    """What was taken because somebody asked for it."""
    if not any(e.kind == "hang" and e.fields.get("requested") is True for e in events):
        return
    asked = [event for event in events if event.kind == "asked-for-dump"]
    taken = sum(1 for event in asked if event.fields.get("ok") is True)
    dumps = "no GPU dump could be asked for"
    if taken:
        dumps = f"{counted(taken, 'process', 'processes')} took the request for a GPU dump"
    elif not asked:
        dumps = "no GPU dump was asked for"
    went_on = "; the program went on to its own end" if _hang(events) is None else ""
    yield f"Evidence was asked for by SIGUSR1: {dumps}{went_on}."
