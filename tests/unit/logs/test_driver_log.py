"""The driver's coredump log: real recordings, other drivers' shapes, several processes at once."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.facts import Dim3
from crashlab.logs.driver_log import DriverLogReader, dumps_with_exceptions, read_driver_log
from crashlab.logs.text import read_lines
from tests.support import golden
from tests.unit.logs.material import as_json, recorded, text

EXPECTED = json.loads(text("driver/expected.json"))
RECORDED = sorted(name for name in EXPECTED if not name.startswith("vllm_"))


def driver(name: str) -> bytes:
    return recorded(f"driver/{name}.txt.xz")


@pytest.mark.parametrize("name", RECORDED)
def test_every_recorded_log_names_what_the_dump_of_the_same_crash_names(name: str) -> None:
    (dump,) = read_driver_log(driver(name)).dumps
    expected = EXPECTED[name]
    assert dump.complete
    assert dump.sms_collected == dump.sms_total * dump.devices_total  # type: ignore[operator]
    assert dump.file is not None
    assert dump.took_seconds is not None
    if expected["exception_code"] is None:
        assert dump.exceptions == ()
        assert dump.trigger == "none-named"
        return
    (exception,) = dump.exceptions
    assert exception.code == expected["exception_code"]
    assert str(exception.pc) in expected["pcs"]
    assert dump.trigger == "exception"
    assert exception.warp_exited == (exception.stacks == ())


@pytest.mark.parametrize("name", [*RECORDED, "two_gpus_interleaved", "disk_full", "no_such_folder"])
def test_recorded_logs_keep_their_reading(name: str, update_golden: bool) -> None:
    golden.check(f"logs/driver/{name}.json", as_json(read_driver_log(driver(name))), update=update_golden)


def test_stack_frames_carry_the_lane_pc_and_the_enclosing_kernel() -> None:
    (dump,) = read_driver_log(driver("stack")).dumps
    (stack,) = dump.exceptions[0].stacks
    assert [frame.level for frame in stack.frames] == [0, 1, 2, 3]
    assert {frame.name for frame in stack.frames} == {"_Z14stack_overflowPii"}
    assert stack.frames[0].pc > dump.exceptions[0].pc  # type: ignore[operator]
    assert stack.active == stack.valid == 0xFFFFFFFF


def test_unknown_frames_have_no_name() -> None:
    (dump,) = read_driver_log(driver("badpc")).dumps
    assert [frame.name for frame in dump.exceptions[0].stacks[0].frames] == [None, None]


def test_assertion_lines_are_counted_with_their_threads() -> None:
    (assertion,) = read_driver_log(driver("torch_gather")).asserts
    assert (assertion.line, assertion.function, assertion.times) == (163, "operator()", 128)
    assert assertion.file == "/pytorch/aten/src/ATen/native/cuda/ScatterGatherKernel.cu"
    assert assertion.expression.startswith("idx_dim >= 0 && idx_dim < index_size")
    assert len(assertion.threads) == 64


def test_memory_percentages_and_sizes_are_read() -> None:
    (dump,) = read_driver_log(driver("graph_full")).dumps
    assert dump.percent == 100
    assert dump.global_bytes is not None
    assert dump.global_bytes > 0


# --- several processes ---------------------------------------------------------------------------


def test_two_processes_that_take_turns_in_every_line_are_told_apart() -> None:
    log = read_driver_log(driver("two_gpus_interleaved"))
    seen = {
        dump.file: (
            dump.exceptions[0].code,
            dump.exceptions[0].device,
            dump.exceptions[0].stacks[0].frames[0].name,
        )
        for dump in log.dumps
        if dump.file
    }
    # The recording started the shared-memory fault on GPU 0 first, the misaligned one on GPU 1 second.
    shared, misaligned = (5, 0, "_Z8k_sharedPfi"), (6, 1, "_Z5k_misPc")
    assert [seen[f"/var/crash/w/{pid}.core"] for pid in (888, 889)] == [shared, misaligned]
    assert [seen[f"/var/crash/w/{pid}.core"] for pid in (915, 916)] == [shared, misaligned]
    assert [seen[f"/var/crash/w/{pid}.core"] for pid in (941, 942)] == [shared, misaligned]
    assert len(log.dumps) == 6
    assert all(dump.complete and dump.sms_collected == 264 for dump in log.dumps)
    assert [dump.interleaved for dump in log.dumps] == [True, True, False, False, True, True]


def test_processes_that_dump_one_after_the_other_are_not_called_interleaved() -> None:
    log = read_driver_log(driver("one_gpu_four_processes"))
    assert [dump.trigger for dump in log.dumps] == ["none-named", "exception", "exception"]
    assert not any(dump.interleaved for dump in log.dumps)
    assert [dump.exceptions[0].code for dump in dumps_with_exceptions(log)] == [12, 6]


def prefixed(source: bytes, prefix: str) -> list[str]:
    return [f"({prefix}) {line}" for line in source.decode().splitlines()]


def test_prefixed_workers_that_interleave_line_by_line_keep_their_own_dumps() -> None:
    one = prefixed(driver("oob_load"), "Worker_TP0 pid=11")
    two = prefixed(driver("misaligned"), "Worker_TP1 pid=12")
    mixed = [line for pair in zip(one, two, strict=False) for line in pair]
    log = read_driver_log([*mixed, *one[len(two) :], *two[len(one) :]])
    assert [(d.process, d.pid, d.exceptions[0].code) for d in log.dumps] == [
        ("Worker_TP0", 11, 14),
        ("Worker_TP1", 12, 6),
    ]
    assert all(d.complete and not d.interleaved for d in log.dumps)


def test_a_server_prefix_glued_to_one_line_does_not_open_a_second_dump() -> None:
    log = read_driver_log(recorded("vllm/stall.log.xz"))
    (dump,) = log.dumps
    assert (dump.process, dump.sms_collected, dump.complete) == (None, 132, True)


def test_a_message_behind_half_a_line_of_another_program_is_read_with_its_time() -> None:
    log = read_driver_log(["loading shards: 40%[17:11:38.1] coredump: Starting GPU coredump generation"])
    assert log.dumps[0].started == "17:11:38.1"


def test_messages_pasted_on_one_line_are_split() -> None:
    pasted = (
        "``` [21:42:21.2] coredump: Detected an exception of type CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS (14) "
        "[21:42:21.3] coredump: - Device: 0 [21:42:21.4] coredump: - SM: 7 [21:42:21.5] coredump: - Warp: 12 "
        "[21:42:21.6] coredump: - PC 0x7f49c2e9ca80 [21:42:21.7] coredump: Stack trace (lane masks: active "
        "0xffffffff, valid 0xffffffff): [21:42:21.8] coredump: #0 0x7f49c2e9caf0 _Z7combinev ```"
    )
    (exception,) = read_driver_log(pasted).dumps[0].exceptions
    assert (exception.code, exception.sm, exception.warp) == (14, 7, 12)
    assert exception.pc == 0x7F49C2E9CA80
    assert exception.stacks[0].frames[0].name == "_Z7combinev ```"


# --- other drivers, failures ----------------------------------------------------------------------

OLD = """\
coredump: SM 1/2 has finished state collection
coredump: SM 2/2 has finished state collection
coredump: Device 1/1 has finished state collection
coredump: Calculating ELF file layout
coredump: ELF file layout calculated
coredump: Writing ELF file to core_1700000000_host_42.nvcudmp
coredump: Writing out global memory (1073741824 bytes)
coredump: 5%...
coredump: 100%...
coredump: Writing out device table
coredump: Finalizing
coredump: All done
"""


def test_older_drivers_print_neither_time_nor_start_nor_exception() -> None:
    (dump,) = read_driver_log(OLD).dumps
    assert (dump.started, dump.complete, dump.percent, dump.took_seconds) == (None, True, 100, None)
    assert dump.file == "core_1700000000_host_42.nvcudmp"


def test_unknown_flags_are_problems_although_they_carry_no_mark() -> None:
    log = read_driver_log(recorded("driver/unknown_flags.txt"))
    assert log.dumps == ()
    assert log.problems == (
        "WARNING: Ignoring unknown coredump flag 'gzip_compress'",
        "WARNING: Ignoring unknown coredump flag 'bogus_flag'",
    )


def test_a_dump_that_could_not_be_opened_is_over_and_says_why() -> None:
    reader = DriverLogReader()
    for line in read_lines(driver("no_such_folder")):
        reader.feed(line)
    (dump,) = reader.result().dumps
    assert not reader.dumping
    assert not dump.complete
    assert dump.problems == (
        "ERROR: Failed to open file /var/crash/w/no/such/dir/x.core (No such file or directory)",
    )
    assert dump.exceptions[0].code == 6


@pytest.mark.parametrize("name", ["disk_full", "size_limit"])
def test_a_dump_that_ran_out_of_space_ends_without_a_word(name: str) -> None:
    (dump,) = read_driver_log(driver(name)).dumps
    assert (dump.complete, dump.phase, dump.problems) == (False, "device-table", ())


def test_a_user_triggered_dump_and_a_trap_look_the_same() -> None:
    asked, trapped = (read_driver_log(driver(name)).dumps[0] for name in ("user_triggered", "trap"))
    assert asked.trigger == trapped.trigger == "none-named"


def test_a_log_cut_during_collection_cannot_tell_whether_there_was_an_exception() -> None:
    lines = driver("hang").splitlines()[:40]
    (dump,) = read_driver_log(lines).dumps
    assert (dump.trigger, dump.sms_collected, dump.sms_total) == (None, 39, 132)


def test_dumping_is_true_exactly_while_a_dump_is_written() -> None:
    reader, states = DriverLogReader(), []
    for line in read_lines(driver("oob_store")):
        reader.feed(line)
        states.append(reader.dumping)
    assert states[0]
    assert all(states[:-1])
    assert not states[-1]


def test_other_programs_called_coredump_are_not_the_driver() -> None:
    log = read_driver_log(
        "systemd-coredump: Process 5 dumped core\nesp-coredump: error: nothing\ncoredump: cannot do that\n"
    )
    assert log.dumps == ()
    assert log.problems == ()


def test_messages_of_unknown_shape_inside_a_dump_are_kept_as_notes() -> None:
    log = read_driver_log("coredump: Starting GPU coredump generation\ncoredump: Compressing the tables\n")
    assert log.dumps[0].notes == ("Compressing the tables",)


def test_assertions_keep_c_plus_plus_names_with_colons() -> None:
    line = (
        "../src/Index.cu:12: void ns::f<a::b>(int): block: [1,2,3], thread: [4,5,6] "
        'Assertion `x && "it\'s `odd`"` failed.'
    )
    (one,) = read_driver_log(line).asserts
    assert (one.file, one.line, one.function) == ("../src/Index.cu", 12, "void ns::f<a::b>(int)")
    assert one.expression == 'x && "it\'s `odd`"'
    assert one.threads[0].thread == Dim3(4, 5, 6)


# --- hostile input --------------------------------------------------------------------------------

WORDS = st.sampled_from(
    [
        "coredump: ",
        "[17:00:00.1] coredump: ",
        "(W pid=1) coredump: ",
        "Starting GPU coredump generation",
        "SM 1/4 has finished",
        "SM 2/4 is not used",
        "SM 4/4 has finished",
        "SM 999999999/1 has finished",
        "Device 1/2 has finished",
        "Device 2/2 has finished",
        "Detected an exception of type X (14)",
        "Detected an exception of type Y",
        "  - Device: 0",
        "  - SM: 2",
        "  - Warp: 1",
        "  - Warp: it has exited",
        "  - PC 0x10",
        "Stack trace (lane masks: active 0x1, valid 0xF):",
        "  #0\t0x20\tname",
        "  #1 0xa0 [Unknown]",
        "Calculating ELF file layout",
        "Writing ELF file to x.core",
        "Writing out global memory (12 bytes)",
        "50%...",
        "Finalizing",
        "ERROR: Failed to open file q (no)",
        "All done (took 01s)",
        "a.cu:1: f: block: [0,0,0], thread: [1,0,0] Assertion `x` failed.",
        "\n",
        "\n",
    ]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(WORDS | st.text(max_size=12), max_size=60))
def test_any_mixture_of_driver_words_is_read_without_complaint(parts: list[str]) -> None:
    log = read_driver_log("".join(parts))
    for dump in log.dumps:
        assert dump.first_line <= dump.last_line
        assert dump.trigger in ("exception", "none-named", None)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=2000))
def test_any_bytes_are_read_without_complaint(data: bytes) -> None:
    read_driver_log(data)


def test_thousands_of_dumps_stay_bounded() -> None:
    log = read_driver_log("coredump: Starting GPU coredump generation\n" * 5000)
    assert len(log.dumps) == 512
    assert log.dropped == 5000 - 512
