"""The host's report (traceback, error line) put in its place beside the verdict.

A CUDA fault is asynchronous and sticky: the host notices it at some later call. Its traceback is
causal only if what it blames is what the GPU's own evidence names.
"""

from __future__ import annotations

from typing import NamedTuple

from crashlab import facts
from crashlab.logs.cuda_errors import CudaErrorEvent, CudaErrors, reported

ASYNCHRONOUS = "asynchronous: not causal"
AGREES = "agrees"

_SHORTEST_NAME = 5
_MAX_BYSTANDERS = 8


class HostJudgement(NamedTuple):
    """``host`` is None when no report was found; ``provenance`` holds the reasons of the relation."""

    host: facts.Host | None
    bystanders: tuple[facts.Bystander, ...] = ()
    inconsistencies: tuple[facts.Inconsistency, ...] = ()
    provenance: tuple[str, ...] = ()


def judge_host(
    errors: CudaErrors, verdict: facts.Verdict | None, *, launch_blocking: bool | None = None
) -> HostJudgement:
    """Relate what the host blamed to the verdict.

    ``launch_blocking``: whether CUDA_LAUNCH_BLOCKING=1 was set, if known. Then a site that is no
    mere wait is the one that launched the kernel, and no relation is claimed beyond the names.
    """
    event = errors.believed
    if event is None:
        return HostJudgement(None)
    report = reported(event)
    relation, reason = _relation(event, report, verdict, launch_blocking)
    found = facts.Host(report, relation)
    bystanders = () if relation != ASYNCHRONOUS else _bystanders(errors, verdict)
    return HostJudgement(found, bystanders, _contradiction(event, verdict), (reason,))


def _relation(
    event: CudaErrorEvent,
    report: facts.HostReported,
    verdict: facts.Verdict | None,
    launch_blocking: bool | None,
) -> tuple[str | None, str]:
    if not event.is_gpu_fault:
        return None, f"The host reported {event.name or event.source}, which is no fault of a GPU kernel."
    name = _names_culprit(event, verdict)
    if name is not None:
        return AGREES, f"The host blames {name}, which the GPU's evidence names too."
    if event.victim is not None:
        return ASYNCHRONOUS, f"The host's report comes from {event.victim.why}."
    if launch_blocking:
        return None, (
            "CUDA_LAUNCH_BLOCKING was set: the site blamed is the one that launched the kernel, "
            "but its name is not the kernel's."
        )
    if event.asynchronous:
        return ASYNCHRONOUS, "The report itself says that its stack may be wrong."
    return ASYNCHRONOUS, "CUDA reports a fault at a later call; nothing ties this site to the kernel."


def _names_culprit(event: CudaErrorEvent, verdict: facts.Verdict | None) -> str | None:
    """The blamed function if it stands, as a whole word, in the name that the verdict gives."""
    blamed = event.blamed.function if event.blamed is not None else None
    if verdict is None or blamed is None or len(blamed) < _SHORTEST_NAME:
        return None
    named = [verdict.kernel, verdict.function]
    texts = [text for one in named if one is not None for text in (one.name, one.mangled) if text]
    return blamed if any(blamed.lower() in text.lower() for text in texts) else None


def _bystanders(errors: CudaErrors, verdict: facts.Verdict | None) -> tuple[facts.Bystander, ...]:
    found: dict[str, facts.Bystander] = {}
    for event in errors.events:
        if not event.is_gpu_fault or len(found) >= _MAX_BYSTANDERS:
            continue
        report = reported(event)
        name = report.kernel_blamed or _short(event)
        if name is None or name in found or _names_culprit(event, verdict):
            continue
        why = (
            f"Blamed by the host at {_place(event)}, but that is {event.victim.why}."
            if event.victim is not None
            else f"Blamed by the host at {_place(event)}; the error was reported after the fact."
        )
        found[name] = facts.Bystander(name, why)
    return tuple(found.values())


def _short(event: CudaErrorEvent) -> str | None:
    if event.blamed is None:
        return None
    return event.blamed.code or event.blamed.function or f"{event.blamed.file.rsplit('/', 1)[-1]}"


def _place(event: CudaErrorEvent) -> str:
    if event.blamed is None:
        return f"line {event.line} of the log"
    return f"{event.blamed.file.rsplit('/', 1)[-1]}:{event.blamed.line}"


def _contradiction(event: CudaErrorEvent, verdict: facts.Verdict | None) -> tuple[facts.Inconsistency, ...]:
    """An assertion on one side only; the other error names overlap too much to contradict."""
    if verdict is None or not event.is_gpu_fault or verdict.exception is None:
        return ()
    host_says, gpu_says = event.name == "cudaErrorAssert", verdict.kind == "device-assert"
    if host_says == gpu_says or event.name in (None, "cudaErrorLaunchFailure", "cudaErrorUnknown"):
        return ()
    return (
        facts.Inconsistency(
            "Host and GPU disagree about whether a device-side assert failed.",
            {"host": event.name, "native": verdict.exception.name},
            "The GPU's own record stands; several faults may have happened, or the log is another run's.",
        ),
    )
