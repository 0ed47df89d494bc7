"""NVRM's lines in every stamp format, what belongs to a crash, and when hardware is suspect."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.facts import EnvFact
from crashlab.logs.hardware import (
    CrashedProcess,
    CrashPlace,
    epoch,
    hardware_suspect,
    sm_pattern,
    with_relevance,
)
from crashlab.logs.kernel_log import KernelLog, read_kernel_log
from crashlab.logs.xid_table import KINDS
from tests.support import golden
from tests.unit.logs.material import as_json, recorded

MMU = (
    "NVRM: Xid (PCI:0000:01:00): 31, pid=1234, name=VLLM::EngineCor, channel 0x0000003e, intr 00000000. "
    "MMU Fault: ENGINE GRAPHICS GPC1 GPCCLIENT_T1_3 faulted @ 0x7e9f_4f200000. "
    "Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ"
)


@pytest.mark.parametrize("name", ["h200-each-fault", "h200-during-dumps"])
def test_recorded_kernel_logs_keep_their_reading(name: str, update_golden: bool) -> None:
    log = read_kernel_log(recorded(f"kernel/{name}.txt"))
    golden.check(f"logs/kernel/{name}.json", as_json(log), update=update_golden)


@pytest.mark.parametrize(
    ("before", "time"),
    [
        ("", None),
        ("[   28.199846] ", "28.199846"),
        ("[Sat Nov 29 17:11:38 2026] ", "Sat Nov 29 17:11:38 2026"),
        ("2026-11-29T17:11:38,199846+00:00 ", "2026-11-29T17:11:38,199846+00:00"),
        ("Nov 29 17:11:38 box kernel: ", "Nov 29 17:11:38"),
        ("Nov 29 17:11:38 box kernel: [12345.678901] ", "Nov 29 17:11:38"),
        ("2026-11-29T17:11:38.199846+00:00 box kernel: ", "2026-11-29T17:11:38.199846+00:00"),
    ],
)
def test_every_stamp_format_gives_time_address_and_owner(before: str, time: str | None) -> None:
    (xid,) = read_kernel_log(before + MMU).xids
    assert (xid.event.code, xid.event.pid, xid.event.pci, xid.event.time) == (31, 1234, "0000:01:00", time)
    assert xid.event.address == 0x7E9F4F200000
    assert (xid.process, xid.engine, xid.client) == ("VLLM::EngineCor", "GRAPHICS GPC1", "GPCCLIENT_T1_3")
    assert (xid.fault_type, xid.access) == ("FAULT_PDE", "ACCESS_TYPE_VIRT_READ")


def test_the_low_half_of_an_address_is_as_wide_as_printed() -> None:
    (xid,) = read_kernel_log(MMU.replace("0x7e9f_4f200000", "0x0_00000000")).xids
    assert xid.event.address == 0


def test_copy_engines_have_no_gpc() -> None:
    (xid,) = read_kernel_log(MMU.replace("GRAPHICS GPC1 GPCCLIENT_T1_3", "CE3 HUBCLIENT_CE0")).xids
    assert (xid.engine, xid.client) == ("CE3", "HUBCLIENT_CE0")


def test_esr_words_are_a_code_and_no_addresses() -> None:
    (xid,) = read_kernel_log(
        "NVRM: Xid (PCI:0000:00:06): 13, Graphics Exception: ESR 0x519730=0xc03000e 0x519734=0x24 "
        "0x519728=0x1f81fb60 0x51972c=0x1174"
    ).xids
    assert (xid.esr_code, xid.sm_error, xid.event.address) == (0x0E, "address out of range", None)


def test_the_sm_of_a_warp_exception_is_the_hardwares_own_number() -> None:
    (xid,) = read_kernel_log(
        "NVRM: Xid (PCI:0000:00:06): 13, Graphics SM Warp Exception on (GPC 7, TPC 3, SM 1): Out Of Range Address"
    ).xids
    assert (xid.gpc, xid.tpc, xid.sm, xid.sm_error) == (7, 3, 1, "Out Of Range Address")


def test_events_without_a_pid_get_the_owner_that_the_next_line_names() -> None:
    log = read_kernel_log(recorded("kernel/h200-each-fault.txt"))
    owners = {(x.event.code, x.event.pid, x.owner_pid) for x in log.xids}
    assert (13, None, 582) in owners
    assert (13, None, 594) in owners
    assert not any(owner is None for _, _, owner in owners)


def test_an_assertion_and_a_trap_leave_only_the_consequence() -> None:
    log = read_kernel_log(recorded("kernel/h200-each-fault.txt"))
    for pid in (605, 617):
        assert [(x.event.code, x.group) for x in log.xids if x.owner_pid == pid] == [(43, "consequence")]


def test_the_driver_version_is_a_fact_with_its_line() -> None:
    log = read_kernel_log(recorded("kernel/h200-each-fault.txt"))
    assert log.driver == EnvFact("580.159.04", "kernel-log:line 1")


def test_mig_and_unknown_owners_are_read() -> None:
    (one,) = read_kernel_log(
        "NVRM: Xid (PCI:0000:01:00 GPU-I:05): 13, pid='<unknown>', name=<unknown>, x"
    ).xids
    assert (one.event.pci, one.event.pid, one.process) == ("0000:01:00", None, None)


def test_processes_that_the_kernel_ended_are_told() -> None:
    log = read_kernel_log(
        "Nov 29 17:11:38 box kernel: Out of memory: Killed process 4321 (python3) total-vm:1kB\n"
        "[ 5.1] python3[77]: segfault at 8 ip 0007f sp 0007f error 4 in libcuda.so.1[7f+100]\n"
        "Killed process talk without the kernel's words\n"
    )
    assert [(k.how, k.pid, k.name, k.time) for k in log.killed] == [
        ("oom-kill", 4321, "python3", "Nov 29 17:11:38"),
        ("segfault", 77, "python3", "5.1"),
    ]


def test_every_number_of_the_table_has_a_known_group() -> None:
    groups = {"application", "hardware", "consequence", "cleanup", "timeout", "driver"}
    assert {kind.group for kind in KINDS.values()} == groups
    assert {code for code, kind in KINDS.items() if kind.group == "hardware"} >= {
        48, 63, 64, 74, 79, 92, 94, 95, 119, 120, 140, 154, 171, 172,
    }  # fmt: skip
    assert KINDS[43].group == "consequence"
    assert KINDS[45].group == "cleanup"


def test_numbers_without_a_row_keep_their_line() -> None:
    (xid,) = read_kernel_log("NVRM: Xid (PCI:0000:01:00): 999, something new").xids
    assert (xid.event.code, xid.event.meaning, xid.group) == (999, None, None)


# --- relevance ------------------------------------------------------------------------------------

NOON = 1796040698.0  # 2026-11-30 12:11:38 UTC


def judged_events(log: KernelLog, process: CrashedProcess) -> list[tuple[int | None, bool | None]]:
    return [(one.event.pid, one.event.relevant) for one in with_relevance(log.xids, process)]


def test_a_process_id_confirms_and_excludes_only_where_both_count_alike() -> None:
    log = read_kernel_log(recorded("kernel/h200-each-fault.txt"))
    events = judged_events(log, CrashedProcess(pids=(594,)))
    assert {relevant for pid, relevant in events if pid == 594} == {True}
    assert {relevant for pid, relevant in events if pid not in (594, None)} == {False}
    unseen = judged_events(log, CrashedProcess(pids=(1,)))
    assert {relevant for pid, relevant in unseen if pid is not None} == {None}


def test_time_excludes_whatever_the_process_id() -> None:
    log = read_kernel_log(recorded("kernel/h200-each-fault.txt"))
    process = CrashedProcess((594, 560), (NOON, NOON + 1.0), boot_time=NOON - 30.0)
    events = judged_events(log, process)
    assert [relevant for pid, relevant in events if pid == 594] == [True]
    assert [relevant for pid, relevant in events if pid == 560] == [False]


def test_relevance_is_unknown_when_neither_process_nor_time_can_tell() -> None:
    log = read_kernel_log(MMU)
    assert [relevant for _, relevant in judged_events(log, CrashedProcess())] == [None]
    assert [relevant for _, relevant in judged_events(log, CrashedProcess(window=(0.0, 1.0)))] == [None]


def test_hardware_events_do_not_need_to_name_the_process() -> None:
    log = read_kernel_log(f"[5.0] {MMU.split(': 31')[0]}: 79, pid=7, name=x, GPU has fallen off the bus.")
    assert judged_events(log, CrashedProcess((1,), (1000.0, 1010.0), boot_time=1000.0)) == [(7, True)]


@pytest.mark.parametrize(
    ("stamp", "seconds"),
    [
        ("30.5", 1030.5),
        ("Mon Nov 30 12:11:38 2026", NOON),
        ("Nov 30 12:11:38", NOON),
        ("2026-11-30T12:11:38,250000+00:00", NOON + 0.25),
        ("2026-11-30T13:11:38.5+0100", NOON + 0.5),
        ("2026-11-30T12:11:38Z", NOON),
        ("2026-11-30 12:11:38", NOON),
        ("Foo 30 12:11:38", None),
        ("garbage", None),
        (None, None),
    ],
)
def test_stamps_become_seconds_since_1970(stamp: str | None, seconds: float | None) -> None:
    assert epoch(stamp, boot_time=1000.0, year=2026, utc_offset=0.0) == seconds


def test_stamps_that_need_more_context_stay_unknown() -> None:
    assert epoch("30.5") is None
    assert epoch("Nov 30 12:11:38", utc_offset=0.0) is None
    assert epoch("2026-11-30 12:11:38") is None
    assert epoch("2026-11-30 13:11:38", utc_offset=3600.0) == NOON


# --- hardware -------------------------------------------------------------------------------------


def xid(code: int, pid: int = 1, place: str = "") -> str:
    return f"NVRM: Xid (PCI:0000:01:00): {code}, pid={pid}, name=x, {place}\n"


def test_hardware_numbers_make_hardware_suspect() -> None:
    judged = hardware_suspect(read_kernel_log(xid(31) + xid(79)).xids)
    assert judged.suspect is True
    assert "79" in judged.reasons[0]


def test_application_numbers_alone_do_not() -> None:
    judged = hardware_suspect(read_kernel_log(recorded("kernel/h200-each-fault.txt")).xids)
    assert judged.suspect is False
    assert judged.reasons == ("Only Xid 13, 31, 43: usually the application or a consequence.",)


def test_an_empty_log_says_nothing() -> None:
    assert hardware_suspect(KernelLog().xids).suspect is None


def test_the_same_sm_under_several_processes_is_no_sign_because_small_launches_always_start_there() -> None:
    log = read_kernel_log(recorded("kernel/h200-each-fault.txt"))
    places = {(x.gpc, x.tpc, x.sm): set() for x in log.xids if x.gpc is not None}  # type: ignore[var-annotated]
    for x in log.xids:
        if x.gpc is not None:
            places[x.gpc, x.tpc, x.sm].add(x.owner_pid)
    assert len(places[1, 4, 0]) >= 3  # the recording itself: four faults of healthy hardware on one SM
    assert hardware_suspect(log.xids).suspect is False


def crashes(*rows: tuple[str | None, int | None, int | None, int | None]) -> list[CrashPlace]:
    return [CrashPlace(*row) for row in rows]


def test_large_launches_that_all_fail_on_one_sm_speak_for_hardware() -> None:
    judged = sm_pattern(crashes(("a", 0, 7, 4096), ("b", 0, 7, 512), ("c", 0, 7, 900)))
    assert judged.suspect is True
    assert "SM 7 of device 0" in judged.reasons[0]
    assert "device" not in sm_pattern(crashes(*((k, None, 7, 999) for k in "abc"))).reasons[0]


def test_small_or_unknown_launches_on_one_sm_leave_it_open() -> None:
    assert sm_pattern(crashes(("a", 0, 124, 1), ("b", 0, 124, 600), ("c", 0, 124, 600))).suspect is None
    assert sm_pattern(crashes(*((k, 0, 124, None) for k in "abc"))).suspect is None


def test_one_kernel_on_many_sms_speaks_for_software() -> None:
    assert sm_pattern(crashes(("a", 0, 1, 9), ("a", 0, 2, 9), ("a", 0, 3, 9))).suspect is False
    assert sm_pattern(crashes(("a", 0, 1, 9), (None, 0, 1, 9), ("b", None, None, 9))).suspect is None


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(["NVRM: Xid (PCI:0000:01:00): ", "13, ", "31, pid=", "7, name=", "ESR 0x1=0x2",
        "MMU Fault: ENGINE GRAPHICS faulted @ 0x1_2", "[ 1.5] ", "\n", "Out of memory: Killed process 3 (x)"])
    | st.text(max_size=20), max_size=30))  # fmt: skip
def test_any_mixture_is_read_without_complaint(parts: list[str]) -> None:
    log = read_kernel_log("".join(parts))
    with_relevance(log.xids, CrashedProcess((7,), (0.0, 9.0), boot_time=1.0, year=2026))
    hardware_suspect(log.xids)


@settings(deadline=None)
@given(st.text(max_size=40))
def test_any_stamp_is_judged_without_complaint(stamp: str) -> None:
    epoch(stamp, boot_time=1.0, year=2026)


def test_long_logs_stay_bounded() -> None:
    log = read_kernel_log(xid(31) * 6000)
    assert len(log.xids) == 4096
    assert log.dropped == 6000 - 4096
