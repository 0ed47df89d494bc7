"""A verdict from text alone, for crashes that left no usable dump, at lower confidence than one with.

Precedence, by how close the source is to the GPU: driver log > compute-sanitizer > host errors >
kernel log > the server's story. The lower ones add context; where they disagree, that is output.
"""

from __future__ import annotations

from crashlab import facts
from crashlab.logs.detect import Evidence
from crashlab.logs.driver_facts import DriverLog
from crashlab.postmortem.host import judge_host
from crashlab.postmortem.log_check import cross_check
from crashlab.postmortem.log_driver import fault_of, from_driver_log, kernel_of
from crashlab.postmortem.log_finding import LogFinding
from crashlab.postmortem.log_text import from_errors, from_kernel_log, from_sanitizer, from_story

__all__ = ["LogFinding", "cross_check", "fault_of", "from_driver_log", "from_evidence", "kernel_of"]


def from_evidence(
    evidence: Evidence, *, user_triggered: bool | None = None, launch_blocking: bool | None = None
) -> LogFinding | None:
    """The best verdict that a log supports, with the host's report beside it; None if it shows no
    failure. ``user_triggered``: True when the caller itself asked for the dump, None if unknown."""
    finding = _best(evidence, _asked_for(evidence, user_triggered))
    if finding is None:
        return None
    host = judge_host(evidence.errors, finding.verdict, launch_blocking=launch_blocking)
    story = evidence.story.sentences if evidence.story is not None else ()
    blamed = evidence.story.blamed if evidence.story is not None else None
    return finding._replace(
        # "EngineDeadError, see stack trace (above)" blames nothing: no relation can be claimed.
        host=host.host or (facts.Host(blamed) if blamed is not None else None),
        bystanders=(*finding.bystanders, *host.bystanders),
        inconsistencies=(*finding.inconsistencies, *host.inconsistencies),
        provenance=tuple(dict.fromkeys((*finding.provenance, *host.provenance, *story))),
        verdict=_with_page(finding.verdict, evidence),
    )


def _best(evidence: Evidence, user_triggered: bool | None) -> LogFinding | None:
    driver = from_driver_log(evidence.driver, user_triggered=user_triggered)
    if driver is not None and driver.verdict.kind != "inconclusive":
        return driver
    other = from_sanitizer(evidence.sanitizer) or from_errors(evidence.errors)
    if other is None and driver is not None:
        return driver
    if other is None:
        other = from_kernel_log(evidence.kernel)
    if other is None and evidence.story is not None:
        other = from_story(evidence.story)
    if other is None and evidence.probe is not None and evidence.probe.sentence:
        other = _from_probe(evidence.probe.sentence)
    return other


def _asked_for(evidence: Evidence, user_triggered: bool | None) -> bool | None:
    """A dump without an exception, of a server that had stalled before, was asked for on the hang."""
    if user_triggered is not None:
        return user_triggered
    stalled = evidence.story is not None and evidence.story.outcome == "stall"
    if evidence.probe is not None and evidence.probe.stalled:
        stalled = True
    return True if stalled else None


def _from_probe(sentence: str) -> LogFinding:
    verdict = facts.Verdict(
        "stall",
        sentence,
        confidence=facts.Confidence(
            "medium", ("Every progress metric stood still with requests in flight.",)
        ),
        does_not_mean=("It does not say whether the GPU was busy: host stacks and a hang dump would.",),
    )
    return LogFinding(verdict)


def _with_page(verdict: facts.Verdict, evidence: Evidence) -> facts.Verdict:
    """Add the faulted page of a single Xid 31 to a verdict that has no address."""
    pages = {one.event.address for one in evidence.kernel.xids if one.event.address is not None}
    if len(pages) != 1 or verdict.kind != "gpu-fault":
        return verdict
    address = verdict.address
    if address is None or address.value is not None or address.finding is not None:
        return verdict
    finding = f"The kernel log names the page {next(iter(pages))} (Xid 31; pages, not bytes)."
    return verdict._replace(address=address._replace(finding=finding))


def explain_missing(log: DriverLog) -> tuple[str, ...]:
    """Why the driver's log says that there is no complete dump, in sentences; empty when all are."""
    told = []
    for dump in log.dumps:
        if dump.complete:
            continue
        name = dump.file.rsplit("/", 1)[-1] if dump.file else "a dump"
        failed = [text for text in dump.problems if text.startswith("ERROR")]
        if failed:
            told.append(f"{name} was not written: the driver said {failed[0]}")
        else:
            told.append(
                f"Writing {name} ended at '{dump.phase}' without a message: the process was killed, or the "
                "disk was full (the driver does not say so)."
            )
    return tuple(told)
