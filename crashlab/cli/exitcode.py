"""Exit codes as a table: what ``--exit-code`` makes of a verdict's kind."""

from __future__ import annotations

from crashlab.facts import Report

UNREADABLE = 3
FAULT = 10
FAULTS = ("gpu-fault", "device-assert", "trap")
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
_FAULT_WITHOUT_DUMP = 11
INCONCLUSIVE = 15


def of_report(report: Report) -> int:
    """10 fault, 11 fault known from text only, 12 hang, 13 garbage, 14, 15 inconclusive, 16, 3 unreadable."""
    code = _BY_KIND.get(report.verdict.kind, INCONCLUSIVE)
    native = (report.readers or {}).get("native")
    if code == 10 and (native is None or native.status != "ok"):
        return _FAULT_WITHOUT_DUMP
    return code
