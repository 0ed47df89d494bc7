"""Does the evidence point at hardware? Then software hypotheses step back.

Also which kernel-log events belong to a crash, by process and time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from crashlab.logs.lazy import Lazy
from crashlab.logs.xid import XidDetail

# One SM that fails under this many different kernels is a pattern.
_SAME_SM = 3
# A launch of few blocks always starts on the same SMs (on an H200 nearly every one-block launch ran on SM 124
# of the dump, GPC 1 TPC 4 of the kernel log): the SM of such a launch says nothing about hardware.
_LARGE_LAUNCH = 512


class HardwareJudgement(NamedTuple):
    """``suspect`` is None when the evidence cannot tell; ``reasons`` always say why."""

    suspect: bool | None
    reasons: tuple[str, ...]


class CrashPlace(NamedTuple):
    """One crash among several: kernel (or key), where it was reported, blocks of the launch if known."""

    kernel: str | None
    device: int | None
    sm: int | None
    blocks: int | None = None


def hardware_suspect(xids: Sequence[XidDetail]) -> HardwareJudgement:
    """Judge a kernel log: Xid numbers of hardware or firmware speak for hardware, the application's
    alone do not. Which SM an Xid 13 names is not used: small launches always start on the same one."""
    if not xids:
        return HardwareJudgement(None, ("The kernel log holds no Xid event.",))
    reasons = [
        f"Xid {one.event.code} at line {one.line}: {one.event.meaning}."
        for one in xids
        if one.group == "hardware"
    ]
    if reasons:
        return HardwareJudgement(True, tuple(reasons[:32]))
    codes = sorted({one.event.code for one in xids})
    return HardwareJudgement(
        False, (f"Only Xid {', '.join(map(str, codes))}: usually the application or a consequence.",)
    )


def sm_pattern(crashes: Iterable[CrashPlace]) -> HardwareJudgement:
    """Judge several crashes: one SM under different kernels speaks for hardware if their launches were
    large enough to cover the GPU, one kernel on different SMs for software."""
    by_sm: dict[tuple[int | None, int], dict[str, int | None]] = {}
    by_kernel: dict[str, set[tuple[int | None, int]]] = {}
    for kernel, device, sm, blocks in crashes:
        if kernel is not None and sm is not None:
            by_sm.setdefault((device, sm), {}).setdefault(kernel, blocks)
            by_kernel.setdefault(kernel, set()).add((device, sm))
    for kernel, places in by_kernel.items():
        if len(places) >= _SAME_SM:
            return HardwareJudgement(False, (f"{kernel} failed on {len(places)} different SMs.",))
    if len(by_sm) == 1:
        ((device, sm), kernels), *_ = by_sm.items()
        name = f"SM {sm}" if device is None else f"SM {sm} of device {device}"
        if len(kernels) >= _SAME_SM:
            text = f"{name} alone failed, under {len(kernels)} different kernels"
            if all(blocks is not None and blocks >= _LARGE_LAUNCH for blocks in kernels.values()):
                return HardwareJudgement(
                    True, (f"{text}, all launched with {_LARGE_LAUNCH} blocks or more.",)
                )
            return HardwareJudgement(
                None, (f"{text}; but launches of few blocks, or of unknown size, always start there.",)
            )
    return HardwareJudgement(None, ("Too few crashes with a known SM and kernel to compare.",))


class CrashedProcess(NamedTuple):
    """Whose crash it is, as far as known: process ids, and (from, to) in seconds since 1970.

    ``moment`` is the part of ``window`` in which it failed, where that is known; ``kernel_pids`` says that
    ``pids`` are counted as the kernel log counts.
    ``boot_time`` (seconds since 1970) makes the uptime stamps of that machine's kernel log comparable,
    ``year`` those of syslog; ``utc_offset`` (seconds east) belongs to stamps without a zone. What is
    None leaves such stamps without a place in time.
    """

    pids: tuple[int, ...] = ()
    window: tuple[float, float] | None = None
    boot_time: float | None = None
    year: int | None = None
    utc_offset: float | None = None
    moment: tuple[float, float] | None = None
    kernel_pids: bool = False


def with_relevance(xids: Sequence[XidDetail], process: CrashedProcess) -> tuple[XidDetail, ...]:
    """The events with ``relevant`` set: True, False, or None where neither process nor time can tell.

    Time excludes. A process id confirms; it excludes only where both count alike (as one confirmed event
    shows): the kernel log counts processes of the host, a program in a container knows its own numbers.
    """
    owners = {one.owner_pid for one in xids if one.owner_pid is not None}
    if owners & set(process.pids):
        process = process._replace(kernel_pids=True)
    alone = not (process.pids and owners - set(process.pids))
    return tuple(
        one._replace(event=one.event._replace(relevant=_relevant(one, process, alone=alone))) for one in xids
    )


def _relevant(one: XidDetail, process: CrashedProcess, *, alone: bool) -> bool | None:
    """``alone``: no other process has an event in this log."""
    seconds = epoch(
        one.event.time, boot_time=process.boot_time, year=process.year, utc_offset=process.utc_offset
    )
    inside = _within(process.window, seconds)
    if inside is False:
        return False
    if one.group == "hardware":
        return inside
    if one.owner_pid is not None and process.pids:
        if one.owner_pid in process.pids:
            return True
        return False if process.kernel_pids else None
    # Nobody's: taken for the program's own only where no other fails beside it, and when it failed itself.
    return inside if alone and _within(process.moment, seconds) is not False else None


def _within(span: tuple[float, float] | None, seconds: float | None) -> bool | None:
    return None if span is None or seconds is None else span[0] <= seconds <= span[1]


_SYSLOG = Lazy(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d")
_CTIME = Lazy(r"[A-Z][a-z]{2} ([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) (\d{4})")
_UPTIME = Lazy(r"\d{1,12}\.\d{1,9}")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def epoch(
    stamp: str | None,
    *,
    boot_time: float | None = None,
    year: int | None = None,
    utc_offset: float | None = None,
) -> float | None:
    """Seconds since 1970 of a kernel log's time stamp, or None when it cannot be placed."""
    from datetime import datetime, timezone

    if stamp is None:
        return None
    if _UPTIME.fullmatch(stamp):
        return boot_time + float(stamp) if boot_time is not None else None
    if found := _CTIME.fullmatch(stamp):
        stamp, year = found.group(1), int(found.group(2))
    try:
        if _SYSLOG.fullmatch(stamp):
            if year is None:
                return None
            month, day, clock = stamp.split()
            hour, minute, second = (int(part) for part in clock.split(":"))
            moment = datetime(year, _MONTHS.index(month) + 1, int(day), hour, minute, second)
        else:
            moment = datetime.fromisoformat(_plain_iso(stamp))
    except ValueError:
        return None
    if moment.tzinfo is not None:
        return moment.timestamp()
    return None if utc_offset is None else moment.replace(tzinfo=timezone.utc).timestamp() - utc_offset


_ISO = Lazy(r"([^.,Z+]{19})(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?")


def _plain_iso(stamp: str) -> str:
    """What Python 3.10's fromisoformat accepts: six digits of a second and a zone with a colon."""
    found = _ISO.fullmatch(stamp)
    if found is None:
        raise ValueError(stamp)
    base, fraction, zone = found.groups()
    if zone == "Z":
        zone = "+00:00"
    elif zone is not None and ":" not in zone:
        zone = f"{zone[:3]}:{zone[3:]}"
    return base + (f".{fraction[:6]:0<6}" if fraction else "") + (zone or "")
