"""A kernel log beside a dump: which lines are this crash's, what an Xid 31 adds, when hardware is suspect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crashlab import facts
from crashlab.logs.hardware import CrashedProcess
from crashlab.report.build import analyze_dump
from crashlab.report.options import AnalyzeOptions
from crashlab.report.runfacts import own_events, process_of, xids_of
from crashlab.report.text import render
from crashlab.rundir.reader import open_run
from tests.support import corpus

DUMP = "use_after_free_head"  # written 2026-11-30T01:30:54Z; lane 0 read 0x7fa424001200
MMU = (
    "{stamp} host kernel: NVRM: Xid (PCI:0000:01:00): 31, pid={pid}, name=python3, Ch 00000008, intr 00000000. "
    "MMU Fault: ENGINE GRAPHICS GPC1 GPCCLIENT_T1_3 faulted @ 0x{address}. Fault is of type FAULT_PDE "
    "ACCESS_TYPE_VIRT_READ\n"
)
BUS = (
    "{stamp} host kernel: NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, "
    "GPU has fallen off the bus.\n"
)
AT_THE_TIME = "2026-11-30T01:30:53+00:00"
DAYS_BEFORE = "2026-11-27T01:30:53+00:00"


def report_of(
    tmp_path: Path, kernel_log: str, process: CrashedProcess | None = None, *, dump: str = DUMP
) -> facts.Report:
    path = tmp_path / "dmesg.txt"
    path.write_text(kernel_log)
    options = AnalyzeOptions(debugger="never", dmesg=(str(path),), process=process)
    return analyze_dump(corpus.path(dump), options)


def test_the_page_of_an_mmu_fault_is_joined_with_the_lanes_that_hit_it(tmp_path: Path) -> None:
    report = report_of(tmp_path, MMU.format(stamp=AT_THE_TIME, pid=7, address="7fa4_24000000"))
    (event,) = report.xid
    assert (event.code, event.relevant) == (31, True)
    assert report.verdict.address is not None
    assert "Xid 31 names page 0x7fa424000000" in (report.verdict.address.finding or "")


def test_a_page_that_no_lane_touched_is_not_joined(tmp_path: Path) -> None:
    report = report_of(tmp_path, MMU.format(stamp=AT_THE_TIME, pid=7, address="7fff_00000000"))
    assert report.verdict.address is not None
    assert "Xid" not in (report.verdict.address.finding or "")


def test_a_line_of_another_day_is_listed_and_not_used(tmp_path: Path) -> None:
    log = MMU.format(stamp=DAYS_BEFORE, pid=7, address="7fa4_24000000") + BUS.format(stamp=DAYS_BEFORE)
    report = report_of(tmp_path, log)
    assert [event.relevant for event in report.xid] == [False, False]
    assert report.verdict.address is not None
    assert "Xid" not in (report.verdict.address.finding or "")
    assert not any("hardware" in caution for caution in report.verdict.does_not_mean)


def test_stamps_without_a_zone_or_date_leave_it_open(tmp_path: Path) -> None:
    for stamp in ("[  812.5]", "Nov 30 01:30:53", "[Mon Nov 30 01:30:53 2026]"):
        report = report_of(tmp_path, MMU.format(stamp=stamp, pid=7, address="7fa4_24000000"))
        assert [event.relevant for event in report.xid] == [None]


def test_another_process_at_the_same_time_is_neither_ours_nor_excluded(tmp_path: Path) -> None:
    """In a container the program's own number is not the one that the kernel log prints."""
    window = (1796002200.0, 1796002400.0)
    log = MMU.format(stamp=AT_THE_TIME, pid=4711, address="7fa4_24000000")
    assert [e.relevant for e in report_of(tmp_path, log, CrashedProcess((7,), window)).xid] == [None]
    assert [e.relevant for e in report_of(tmp_path, log, CrashedProcess((4711,), window)).xid] == [True]


@pytest.mark.parametrize("dump", [DUMP, "cut_short"])
def test_a_hardware_event_of_the_time_warns_about_every_software_explanation(
    tmp_path: Path, dump: str
) -> None:
    report = report_of(tmp_path, BUS.format(stamp=AT_THE_TIME), dump=dump)
    assert any("hardware" in caution and "Xid 79" in caution for caution in report.verdict.does_not_mean)


def test_an_application_event_does_not_accuse_the_hardware(tmp_path: Path) -> None:
    report = report_of(tmp_path, MMU.format(stamp=AT_THE_TIME, pid=7, address="7fa4_24000000"))
    assert not any("hardware" in caution for caution in report.verdict.does_not_mean)


def test_a_run_directory_knows_its_processes_its_time_and_the_boot(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"argv": ["x"], "machine": {"boot_time": 1000}}))
    rows = (
        {"event": "started", "attempt": 1, "pid": 41, "t": "2026-11-30T01:00:00Z", "m": 1.0},
        {"event": "process", "attempt": 1, "pid": 42, "t": "2026-11-30T01:00:30Z", "m": 31.0},
        {"event": "process", "attempt": 2, "pid": 43, "t": "2026-11-30T02:00:00Z", "m": 3601.0},
    )
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    process = process_of(open_run(tmp_path), 1)
    assert process.pids == (41, 42)
    assert process.boot_time == 1000.0
    assert process.window is not None
    assert process.window[1] - process.window[0] == 90.0  # 30 seconds, and a minute for the teardown


def test_the_kernel_log_s_own_numbers_exclude_other_processes(tmp_path: Path) -> None:
    window = (1796002200.0, 1796002400.0)
    log = MMU.format(stamp=AT_THE_TIME, pid=4711, address="7fa4_24000000")
    known = CrashedProcess((7,), window, kernel_pids=True)
    assert [e.relevant for e in report_of(tmp_path, log, known).xid] == [False]
    both = log + MMU.format(stamp=AT_THE_TIME, pid=7, address="7fa4_24000000")
    found = report_of(tmp_path, both, CrashedProcess((7,), window)).xid
    assert [e.relevant for e in found] == [False, True], "one confirmed number shows how both count"


def test_nobody_s_event_counts_only_when_it_came_as_the_program_failed(tmp_path: Path) -> None:
    at = AT_THE_TIME
    log = f"{at} host kernel: NVRM: Xid (PCI:0000:00:06): 13, Graphics SM Warp Exception on (GPC 0, TPC 0, SM 0): x\n"
    window = (1796002200.0, 1796002400.0)
    early = CrashedProcess((7,), window, moment=(window[1] - 1, window[1]))
    assert [e.relevant for e in report_of(tmp_path, log, early).xid] == [None]
    assert [
        e.relevant for e in report_of(tmp_path, log, CrashedProcess((7,), window, moment=window)).xid
    ] == [True]


def test_a_process_that_only_an_xid_names_is_not_the_run_s(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"argv": ["x"], "machine": {"kernel_pids": True}}))
    rows = (
        {"event": "started", "attempt": 1, "pid": 41, "t": "2026-11-30T01:00:00Z", "m": 1.0},
        {"event": "xid", "attempt": 1, "pid": 99, "code": 31, "t": "2026-11-30T01:00:10Z", "m": 11.0},
        {"event": "dump", "attempt": 1, "pid": 41, "t": "2026-11-30T01:01:00Z", "m": 61.0},
    )
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = open_run(tmp_path)
    process = process_of(run, 1)
    assert process.pids == (41,)
    assert process.kernel_pids
    assert process.window is not None
    assert process.moment == (process.window[0] + 30.0, process.window[1])
    assert [event.kind for event in own_events(run, 1)] == ["started", "dump"]
    assert xids_of(run, 1) == ()


def test_a_run_directory_without_times_or_boot_still_answers(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"machine": ["?"]}))
    (tmp_path / "events.jsonl").write_text('{"event": "started", "attempt": 1, "pid": true, "t": 5}\n')
    assert process_of(open_run(tmp_path), 1) == CrashedProcess()


def test_the_text_lists_what_the_kernel_log_said_and_whose_it_is(tmp_path: Path) -> None:
    log = MMU.format(stamp=DAYS_BEFORE, pid=7, address="7fa4_24000000") + BUS.format(stamp=AT_THE_TIME)
    shown = " ".join(render(report_of(tmp_path, log)).split())
    assert "kernel log Xid 79" in shown
    assert "1 more Xid event is of another time" in shown
