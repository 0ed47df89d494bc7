"""Several dumps of one crash: the first real exception is the candidate origin."""

from __future__ import annotations

import calendar
import time
from collections.abc import Iterator, Sequence

from crashlab import facts

_FAULTS = ("gpu-fault", "device-assert", "trap")
FAR_APART = 300.0
"""Seconds. One crash reaches the other ranks within moments; what comes after is the writing of their dumps."""
_NAMED = 4


def combine(reports: Sequence[facts.Report]) -> facts.Report:
    """One report for several dumps.

    The verdict is that of the earliest dump with an exception of its own (times come from the dumps'
    metadata; dumps without a time keep the order given), else that of the first hang, else of the
    first dump. All others are listed in ``cases``; those that were written minutes before or after it
    with the role ``apart``, for they may be of another crash.
    """
    order = sorted(range(len(reports)), key=lambda i: (_rank(reports[i]), _time(reports[i]), i))
    origin = reports[order[0]]
    cases = [
        _case(report, origin)
        for report in (reports[i] for i in sorted(order, key=lambda i: _time(reports[i])))
    ]
    bystanders = list(origin.bystanders)
    for report in reports:
        verdict = report.verdict
        if (
            report is origin
            or verdict.kind != "hang"
            or verdict.kernel is None
            or origin.verdict.kind not in _FAULTS
            or _apart(report, origin)
        ):
            continue
        bystanders.append(
            facts.Bystander(
                verdict.kernel.name or "unnamed kernel",
                f"It was waiting in {report.inputs[0].path}, which has no exception of its own, while "
                f"{origin.inputs[0].path} has one.",
            )
        )
    return origin._replace(
        verdict=_cautioned(origin, reports),
        inputs=(*origin.inputs, *_other_inputs(origin, reports)),
        faults=(*origin.faults, *(fault for r in reports if r is not origin for fault in r.faults)),
        bystanders=tuple(bystanders),
        gpus=tuple(gpu for r in (origin, *(r for r in reports if r is not origin)) for gpu in r.gpus),
        inconsistencies=(
            *origin.inconsistencies,
            *(i for r in reports if r is not origin for i in r.inconsistencies),
        ),
        provenance=(
            *origin.provenance,
            f"{len(reports)} dumps were read as one crash; the verdict is that of {origin.inputs[0].path}, "
            + (
                "the earliest with an exception."
                if _rank(origin) == 0
                else "as none of them has an exception."
            ),
        ),
        cases=tuple(cases),
    )


def _other_inputs(origin: facts.Report, reports: Sequence[facts.Report]) -> Iterator[facts.Input]:
    """What the other dumps' reports were made of; a log that stands beside several dumps is named once."""
    named = {item.path for item in origin.inputs[1:]}
    for report in reports:
        if report is not origin:
            yield report.inputs[0]
            yield from (item for item in report.inputs[1:] if item.path not in named)
            named |= {item.path for item in report.inputs[1:]}


def _cautioned(origin: facts.Report, reports: Sequence[facts.Report]) -> facts.Verdict:
    """The origin's verdict, which does not speak for dumps that were written much earlier or later."""
    far = [report for report in reports if _apart(report, origin)]
    if not far:
        return origin.verdict
    minutes = max(abs(_time(report) - _time(origin)) for report in far) / 60
    names = ", ".join(report.inputs[0].path for report in far[:_NAMED])
    more = f" and {len(far) - _NAMED} more" if len(far) > _NAMED else ""
    caution = (
        f"It does not mean that all these dumps are of one crash: {names}{more} and {origin.inputs[0].path} "
        f"were written {'up to ' if len(far) > 1 else ''}{minutes:.0f} minutes apart and may be of different "
        "crashes."
    )
    return origin.verdict._replace(does_not_mean=(*origin.verdict.does_not_mean, caution))


def _apart(report: facts.Report, origin: facts.Report) -> bool:
    """Whether both dumps tell when they were written, and it was minutes apart."""
    times = (_time(report), _time(origin))
    return float("inf") not in times and abs(times[0] - times[1]) > FAR_APART


def _rank(report: facts.Report) -> int:
    kind = report.verdict.kind
    return 0 if kind in _FAULTS else {"hang": 1, "stall": 1, "no-fault": 2}.get(kind, 3)


def _time(report: facts.Report) -> float:
    stamp = (report.environment or {}).get("dump_time")
    if stamp is None:
        return float("inf")
    try:
        return float(calendar.timegm(time.strptime(stamp.value, "%Y-%m-%dT%H:%M:%SZ")))
    except ValueError:
        return float("inf")


def _case(report: facts.Report, origin: facts.Report) -> facts.Case:
    verdict = report.verdict
    role = {0: "sympathetic", 1: "bystander", 2: "bystander"}.get(_rank(report), "unreadable")
    if report is origin:
        role = "origin"
    elif role != "unreadable" and _apart(report, origin):
        role = "apart"
    stamp = (report.environment or {}).get("dump_time")
    return facts.Case(
        input=report.inputs[0].path,
        role=role,
        kind=verdict.kind,
        headline=verdict.headline,
        time=stamp.value if stamp else None,
        kernel=verdict.kernel.name if verdict.kernel else None,
        pc=verdict.pc,
    )
