"""Xid events in reports: equal ones together, others' as a number, and no more than a reader may look at."""

from __future__ import annotations

import pytest

from crashlab.facts import Hex, Report, Tool, Verdict, XidEvent
from crashlab.logs.hardware import CrashedProcess
from crashlab.logs.kernel_log import read_kernel_log
from crashlab.postmortem.xidjoin import join_xid
from crashlab.report import xidgroups
from crashlab.report.text import render


def event(code: int, time: str, pid: int | None = None, relevant: bool | None = True) -> XidEvent:
    return XidEvent(code, "meaning", time, pid, relevant, address=Hex(pid * 4096) if pid else None)


def test_equal_events_are_one_group_from_the_first_to_the_last() -> None:
    (group,) = xidgroups.own([event(13, "1.0"), event(13, "2.0"), event(13, "3.0")])
    assert (group.number, group.span) == (3, "1.0 to 3.0")
    (single,) = xidgroups.own([event(13, "1.0")])
    assert (single.number, single.span) == (1, "1.0")
    assert xidgroups.own([XidEvent(13)])[0].span == ""


def test_the_crash_s_own_processes_are_told_apart_and_perhaps_others_are_not() -> None:
    assert len(xidgroups.own([event(31, "1.0", 7), event(31, "2.0", 8)])) == 2
    (group,) = xidgroups.own([event(31, "1.0", 7, None), event(31, "2.0", 8, None)])
    assert group.number == 2


def test_others_are_a_number_with_their_codes() -> None:
    events = [event(31, "1.0", 7, False), event(13, "2.0", None, False), event(13, "3.0", None, False)]
    assert xidgroups.own(events) == ()
    assert xidgroups.others(events) == "3 more Xid events are of another time or process: Xid 13 (2), Xid 31"
    assert xidgroups.others(events[:1]) == "1 more Xid event is of another time or process: Xid 31"
    assert xidgroups.others([event(13, "1.0")]) is None


@pytest.mark.parametrize("verbose", [False, True])
def test_a_thousand_lines_of_the_kernel_log_are_a_few_lines_of_the_report(verbose: bool) -> None:
    log = "".join(
        f"[ {1000 + n}.5] NVRM: Xid (PCI:0000:00:06): 31, pid={n % 400}, name=x, Ch 1, intr 0. MMU Fault: "
        f"ENGINE GRAPHICS faulted @ 0x7f_{n:08x}. Fault is of type FAULT_PDE ACCESS_TYPE_READ\n"
        for n in range(1000)
    )
    process = CrashedProcess((7,), (0.0, 1e6), boot_time=0.0)
    empty = Report("crashlab.report/1", Tool("crashlab", "0"), "", (), Verdict("gpu-fault", "x"))
    report = join_xid(empty, read_kernel_log(log).xids, process)
    assert {one.relevant for one in report.xid} == {True, False}
    assert len(report.xid) == 3 + 32
    assert "The kernel log has 1000 Xid lines; 35 of them are listed." in report.provenance
    text = render(report, verbose=verbose)
    assert text.count("Xid") < 8
    assert "32 more Xid events are of another time or process: Xid 31 (32)" in " ".join(text.split())
