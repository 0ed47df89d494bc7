"""Several dumps of one crash: the first real exception is the candidate origin."""

from __future__ import annotations

import calendar
import time
from collections.abc import Sequence

from crashlab import facts

_FAULTS = ("gpu-fault", "device-assert", "trap")


def combine(reports: Sequence[facts.Report]) -> facts.Report:
    """One report for several dumps.

    The verdict is that of the earliest dump with an exception of its own (times come from the dumps'
    metadata; dumps without a time keep the order given), else that of the first hang, else of the
    first dump. All others are listed in ``cases``.
    """
    order = sorted(range(len(reports)), key=lambda i: (_rank(reports[i]), _time(reports[i]), i))
    origin = reports[order[0]]
    cases = [
        _case(report, report is origin)
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
        inputs=(*origin.inputs, *(item for r in reports if r is not origin for item in r.inputs)),
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


def _case(report: facts.Report, origin: bool) -> facts.Case:
    verdict = report.verdict
    role = (
        "origin"
        if origin
        else {0: "sympathetic", 1: "bystander", 2: "bystander"}.get(_rank(report), "unreadable")
    )
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
