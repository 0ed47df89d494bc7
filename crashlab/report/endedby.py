"""How a command ended, in words: what the record's ``ended_by`` and the events around it mean."""

from __future__ import annotations

from collections.abc import Iterable

from crashlab.postmortem.words import counted
from crashlab.report.runfacts import last
from crashlab.rundir.reader import Event

_OURS = {
    "hang": "was ended by crashlab after the evidence of its hang was taken",
    "after-fault": "was ended by crashlab, since it went on after a GPU fault",
    "dump-limit": "was ended by crashlab, since a dump was not waited for any longer",
}
_SOAK = {
    "clean": "at the end of the load",
    "fault": "after a fault",
    "died": "after its death",
    "stall": "after its stall",
    "garbage": "after bad answers",
    "never-ready": "since it never became ready",
    "refuses": "since it took no requests",
    "failing": "since requests failed",
    "interrupted": "on request",
    "load-failed": "since the load could not go on",
    "error": "after an error of crashlab",
}
_LOADS = {"soak": "the soak", "quality": "the quality run"}


def how(ended: Event, events: Iterable[Event] = ()) -> str:
    """``ended with exit code 0``, ``was ended on request by SIGTERM``, … for "The command …" and "the program …"."""
    by = ended.text("ended_by")
    code, signal = ended.number("exit_code"), ended.text("signal")
    number = f"with exit code {code}" if code is not None else f"by {signal}" if signal else ""
    events = tuple(events)
    if by is None or by == "outlived":
        said = f"{'was ended' if signal and code is None else 'ended'} {number}".rstrip()
        return f"{said}; {_outlived(events)}" if by is not None else said
    if by == "user":
        said = "was ended on request"
    elif by in _OURS:
        said = _OURS[by]
    else:
        load, _, outcome = by.partition(": ")
        said = f"was ended by {_LOADS.get(load, 'crashlab')}"
        said += f" {_SOAK[outcome]}" if outcome in _SOAK else ""
    if signal == "SIGKILL" and last(events, "killed") is not None:
        return f"{said}: it did not end when asked, and was killed (SIGKILL)"
    return f"{said} ({number})" if number else said


def _outlived(events: tuple[Event, ...]) -> str:
    """What lived on after the command, and was ended."""
    event = last(events, "outlived")
    count = event.number("count") if event is not None else None
    if event is None or count is None:
        return "processes that it had started outlived it and were ended by crashlab (--linger)"
    names = event.fields.get("living")
    shown = [str(one) for one in names[:5]] if isinstance(names, list) else []
    told = f" ({', '.join(shown)}{', …' if count > len(shown) else ''})" if shown else ""
    verb = "was" if count == 1 else "were"
    return (
        f"{counted(count, 'process', 'processes')} that it had started{told} outlived it and {verb} ended by "
        "crashlab (--linger)"
    )
