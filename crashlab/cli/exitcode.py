"""Exit codes as a table: what ``--exit-code`` makes of a verdict's kind."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crashlab.facts import Report

UNREADABLE = 3
_BY_KIND = {
    "gpu-fault": 10,
    "device-assert": 10,
    "trap": 10,
    "hang": 12,
    "stall": 12,
    "garbage": 13,
    "never-ready": 14,
    "host-death": 16,
    "no-fault": 0,
    "unreadable": UNREADABLE,
}
KINDS = tuple(_BY_KIND)
_FAULT_WITHOUT_DUMP = 11
INCONCLUSIVE = 15


def of_report(report: Report) -> int:
    """10 fault, 11 fault known from text only, 12 hang, 13 garbage, 14, 15 inconclusive, 16, 3 unreadable.

    Of several dumps the verdict decides. It is "no fault" only if each of them could be read.
    """
    code = _BY_KIND.get(report.verdict.kind, INCONCLUSIVE)
    native = (report.readers or {}).get("native")
    if code == 10 and (native is None or native.status != "ok"):
        return _FAULT_WITHOUT_DUMP
    if code == 0 and any(case.role == "unreadable" for case in report.cases):
        return INCONCLUSIVE
    return code


def of_folder(kinds: Collection[str], unreadable: int) -> int:
    """Of many crashes: a fault before a hang before anything else; ``unreadable``: dumps that were not read."""
    if not kinds:
        return UNREADABLE if unreadable else 0
    found = [code for kind in kinds if (code := _BY_KIND.get(kind, INCONCLUSIVE))]
    return min(found, default=INCONCLUSIVE if unreadable else 0)


def of_analysis(report: Report, *, told: bool) -> int:
    """What ``crashlab analyze`` ends with: that of the verdict only when it was to be ``told``."""
    if report.verdict.kind == "unreadable":
        return UNREADABLE
    return of_report(report) if told else 0
