"""One Xid line taken apart.

Only Xid 31 carries an address (page-granular, with an underscore in the middle). The ESR words of
Xid 13 are a code and constant masks, **not** addresses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from crashlab.facts import Hex, XidEvent
from crashlab.logs.lazy import Lazy
from crashlab.logs.text import Line
from crashlab.logs.xid_table import ESR_CODES, kind_of

_XID = Lazy(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]{4,32})[^)]{0,64}\)[^:]{0,64}: (\d{1,4}), ?")
_UPTIME = Lazy(r"\[ {0,12}(\d{1,12}\.\d{1,9})\] ?")
_CTIME = Lazy(r"\[([A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})\] ?")
_ISO = Lazy(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?) ")
_PID = Lazy(r"pid='?(\d{1,9})'?, (?:name=([^,]{0,64}), )?")
_MMU = Lazy(
    r"MMU Fault: ENGINE ([A-Z0-9_]{1,64})(?: ([A-Z0-9_]{1,64}))?(?: ([A-Z0-9_]{1,64}))? "
    r"faulted @ 0x([0-9a-fA-F]{1,16})(?:_([0-9a-fA-F]{1,16}))?"
)
_FAULT_TYPE = Lazy(r"Fault is of type ([A-Z0-9_]{1,64})(?: ([A-Z0-9_]{1,64}))?")
_SM = Lazy(r"on \(GPC (\d{1,4}), TPC (\d{1,4}), SM (\d{1,4})\): (.{1,200})")
_ESR = Lazy(r"0x([0-9a-fA-F]{1,8})=0x([0-9a-fA-F]{1,8})")


class XidDetail(NamedTuple):
    """One Xid line decoded.

    ``owner_pid`` is the pid that the line names, or that of the next line about the same GPU within
    a second (driver 580 prints most Xid 13 lines without one). ``gpc``, ``tpc``, ``sm`` are the
    hardware's own numbers, not a dump's SM ids. ``esr_code`` is the low byte of the first ESR word.
    """

    event: XidEvent
    line: int
    group: str | None = None
    process: str | None = None
    engine: str | None = None
    client: str | None = None
    fault_type: str | None = None
    access: str | None = None
    gpc: int | None = None
    tpc: int | None = None
    sm: int | None = None
    sm_error: str | None = None
    esr_code: int | None = None
    owner_pid: int | None = None


def xid_of(line: Line) -> XidDetail | None:
    """The Xid event of a kernel log line, or None."""
    found = _XID.search(line.text) if "NVRM: Xid" in line.text else None
    return _decode(line, found) if found else None


def split_time(line: Line) -> tuple[str | None, str]:
    """(time as printed, rest): the journal's stamp if there is one, else the kernel's."""
    text, stamp = line.text, line.stamp
    for pattern in (_UPTIME, _CTIME, _ISO):
        if found := pattern.match(text):
            return stamp or found.group(1), text[found.end() :]
    return stamp, text


def _decode(line: Line, found: re.Match[str]) -> XidDetail:
    time, _ = split_time(line)
    code, rest = int(found.group(2)), line.text[found.end() :]
    kind = kind_of(code)
    owner = _PID.search(rest[:160])
    event = XidEvent(
        code=code,
        meaning=kind.meaning if kind else None,
        time=time,
        pid=int(owner.group(1)) if owner else None,
        pci=found.group(1),
        text=line.text[found.start() :][:1024],
    )
    detail = XidDetail(
        event,
        line.number,
        group=kind.group if kind else None,
        process=owner.group(2) if owner else None,
    )
    return _exception(_mmu_fault(detail, rest), rest)


def _mmu_fault(detail: XidDetail, rest: str) -> XidDetail:
    fault = _MMU.search(rest)
    if fault is None:
        return detail
    engine, first, second, high, low = fault.groups()
    digits = high + low if low is not None else high
    kind = _FAULT_TYPE.search(rest, fault.end())
    return detail._replace(
        event=detail.event._replace(address=Hex(int(digits, 16))),
        engine=f"{engine} {first}" if second is not None else engine,
        client=second or first,
        fault_type=kind.group(1) if kind else None,
        access=kind.group(2) if kind else None,
    )


def _exception(detail: XidDetail, rest: str) -> XidDetail:
    if detail.event.code != 13:
        return detail
    if place := _SM.search(rest):
        gpc, tpc, sm = (int(place.group(i)) for i in (1, 2, 3))
        return detail._replace(gpc=gpc, tpc=tpc, sm=sm, sm_error=place.group(4).strip())
    if "ESR" in rest and (word := _ESR.search(rest)):
        code = int(word.group(2), 16) & 0xFF
        return detail._replace(esr_code=code, sm_error=ESR_CODES.get(code))
    return detail


def with_owners(xids: Sequence[XidDetail]) -> Iterable[XidDetail]:
    """Each event with the process it belongs to, as far as the log lets one infer it."""
    later: dict[str | None, tuple[float | None, int]] = {}
    done: list[XidDetail] = []
    for one in reversed(xids):
        seconds = _uptime(one.event.time)
        pid = one.event.pid
        if pid is None:
            near = later.get(one.event.pci)
            if near is not None and near[0] is not None and seconds is not None and near[0] - seconds <= 1.0:
                pid = near[1]
        else:
            later[one.event.pci] = (seconds, pid)
        done.append(one._replace(owner_pid=pid))
    return reversed(done)


def _uptime(time: str | None) -> float | None:
    return float(time) if time is not None and time.replace(".", "", 1).isdigit() else None
