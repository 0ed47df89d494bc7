"""Verdicts from text that names no GPU exception by itself: sanitizer, host errors, kernel log, story.

Each function answers None when its source has nothing to say; none claims a kernel that was not named.
"""

from __future__ import annotations

from crashlab import facts
from crashlab.logs.cuda_errors import CudaErrors, reported
from crashlab.logs.kernel_log import KernelLog
from crashlab.logs.sanitizer import SanitizerFault, SanitizerLog
from crashlab.logs.serving_facts import ServingStory
from crashlab.logs.xid import XidDetail
from crashlab.postmortem.fromfault import verdict_of
from crashlab.postmortem.log_finding import NO_DUMP, LogFinding
from crashlab.postmortem.words import article

_ACCESS = {"read": "load", "write": "store", "atomic": "atomic"}
_SANITIZER_KINDS = {"trap": "trap", "device-assert": "device-assert"}
_NOT_FAULTS = ("leak", "api-error", "error")
_ONE_RUN = "The sanitizer changes timing and memory layout: what it finds need not be this crash's cause."


def from_sanitizer(log: SanitizerLog) -> LogFinding | None:
    """The first access, race or trap that compute-sanitizer printed."""
    found = [fault for fault in log.faults if fault.kind not in _NOT_FAULTS]
    if not found:
        return None
    first = found[0]
    faults = tuple(_sanitizer_fault(fault) for fault in found)
    fault = faults[0]
    verdict = verdict_of(_SANITIZER_KINDS.get(first.kind, "gpu-fault"), fault)._replace(
        headline=_sanitizer_headline(first),
        address=_sanitizer_address(first),
        confidence=facts.Confidence(
            "medium", ("compute-sanitizer checked the access itself and names kernel and thread.", NO_DUMP)
        ),
        does_not_mean=(_ONE_RUN,),
    )
    note = f"The fault is line {first.line} of the sanitizer's output."
    return LogFinding(verdict, faults, provenance=(note,))


def _sanitizer_fault(one: SanitizerFault) -> facts.Fault:
    function = facts.Function(one.function, None, one.offset) if one.function else None
    access = _ACCESS.get(one.access or "")
    return facts.Fault(
        exception=None,
        pc=None,
        pc_source=None,
        kernel=facts.Kernel(one.kernel, None) if one.kernel else None,
        function=function,
        source=facts.Source(one.file, one.source_line) if one.file and one.source_line is not None else None,
        where=facts.Where(block=one.block, threads=(one.thread,) if one.thread is not None else ()),
        instruction=facts.Instruction(one.text, access=access, space=one.space, width_bytes=one.size)
        if access
        else None,
        reports=one.times,
    )


def _sanitizer_headline(one: SanitizerFault) -> str:
    place = f" at {one.file}:{one.source_line}" if one.file else ""
    name = f" in {one.kernel}" if one.kernel else ""
    problem = f": {one.problem}" if one.problem else ""
    return f"compute-sanitizer: {one.text}{name}{place}{problem}"


def _sanitizer_address(one: SanitizerFault) -> facts.Address:
    if one.address is None:
        return facts.Address("not-applicable")
    near = one.nearest
    finding = f"{one.address} is {one.problem}"
    if near is not None and near.distance is not None:
        finding += f", {near.distance} bytes {near.side} the allocation at {near.base} of {near.size} bytes"
    return facts.Address(
        "recovered",
        value=one.address,
        space=one.space,
        finding=finding,
        kind="misaligned" if one.problem == "misaligned" else None,
        width_bytes=one.size,
    )


def from_errors(errors: CudaErrors) -> LogFinding | None:
    """A GPU fault of which only the host's error is known: no kernel, no instruction."""
    event = errors.first_fault
    if event is None:
        return None
    kind = "device-assert" if event.name == "cudaErrorAssert" else "gpu-fault"
    name = event.name or event.message.split("\n", 1)[0][:120]
    where = reported(event).where
    site = f" ({where[:200]})" if where else ""
    who = f" of {event.process} (pid {event.pid})" if event.process and event.pid is not None else ""
    verdict = facts.Verdict(
        kind=kind,
        headline=f"A GPU kernel{who} faulted: {name}. The host's report does not tell which kernel.",
        exception=facts.GpuException(None, name, None, event.message.split("\n", 1)[0][:300]),
        address=facts.Address("not-recoverable", why="there is no dump"),
        confidence=facts.Confidence("low", ("Only the host's error report is known.", NO_DUMP)),
        does_not_mean=(f"The site that the host blames{site} is not shown to be the culprit.",),
    )
    return LogFinding(verdict, provenance=(f"The error is line {event.line} of the log.",))


def from_kernel_log(log: KernelLog) -> LogFinding | None:
    """A fault or a death that only the kernel log shows."""
    faults = [one for one in log.xids if one.event.code in (13, 31) and one.event.relevant is not False]
    if faults:
        return _xid_fault(faults)
    hardware = [one for one in log.xids if one.group == "hardware"]
    if hardware:
        one = hardware[0]
        headline = f"The kernel log reports Xid {one.event.code}: {one.event.meaning}."
        return _host_death(headline, one.line, "medium", "The driver reported it; no kernel is involved.")
    if log.killed:
        gone = log.killed[0]
        how = "out of host memory (OOM killer)" if gone.how == "oom-kill" else "a segmentation fault"
        headline = f"The kernel ended {gone.name} (pid {gone.pid}): {how}."
        return _host_death(headline, gone.line, "medium", "The kernel log says so.")
    return None


def _xid_fault(faults: list[XidDetail]) -> LogFinding:
    with_address = next((one for one in faults if one.event.address is not None), None)
    one = with_address or faults[0]
    what = one.sm_error or one.event.meaning or "a fault"
    address = facts.Address("not-recoverable", why="there is no dump")
    if with_address is not None and one.event.address is not None:
        access = (one.access or "").removeprefix("ACCESS_TYPE_VIRT_").lower()
        verb = f" by {article(access)} {access}" if access in ("read", "write", "atomic") else ""
        address = address._replace(
            finding=f"The kernel log names the page {one.event.address}{verb} (Xid 31; pages, not bytes)."
        )
    who = f" (pid {one.owner_pid})" if one.owner_pid is not None else ""
    verdict = facts.Verdict(
        kind="gpu-fault",
        headline=f"The kernel log reports a GPU fault{who}, kernel not known: Xid {one.event.code}, {what}.",
        address=address,
        confidence=facts.Confidence("low", ("Only the kernel log is known.", NO_DUMP)),
        does_not_mean=("An Xid of this kind is usually the application's, but does not exclude hardware.",),
    )
    return LogFinding(verdict, provenance=(f"The event is line {one.line} of the kernel log.",))


def _host_death(headline: str, line: int, level: str, reason: str) -> LogFinding:
    verdict = facts.Verdict("host-death", headline, confidence=facts.Confidence(level, (reason,)))
    return LogFinding(verdict, provenance=(f"Line {line} of the kernel log.",))


_OUTCOMES = {
    "stall": ("stall", "The server stopped making progress with requests in flight."),
    "host-death": ("host-death", "The engine process died; the log shows no GPU error."),
    "out-of-memory": ("host-death", "The engine died after running out of GPU memory."),
    "never-ready": ("host-death", "The server failed before it was ready."),
}


def from_story(story: ServingStory) -> LogFinding | None:
    """A stall or a death that the serving log shows without any GPU fault."""
    if story.outcome not in _OUTCOMES:
        return None
    kind, headline = _OUTCOMES[story.outcome]
    if story.died:
        headline += f" It was {story.died}{f', at {story.died_at}' if story.died_at else ''}."
    verdict = facts.Verdict(
        kind,
        headline,
        confidence=facts.Confidence("low", ("Only the server's log is known.", NO_DUMP)),
        does_not_mean=("No GPU error in the log does not mean that no kernel misbehaved.",),
    )
    return LogFinding(verdict, provenance=story.sentences)
