"""Verdicts from text alone: never more than was printed, and the dump's record wins a disagreement."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab import facts
from crashlab.facts import Dim3, Hex
from crashlab.logs.cuda_errors import read_cuda_errors
from crashlab.logs.detect import read_evidence
from crashlab.logs.driver_log import read_driver_log
from crashlab.postmortem.from_logs import (
    LogFinding,
    cross_check,
    explain_missing,
    from_driver_log,
    from_evidence,
)
from crashlab.postmortem.host import AGREES, ASYNCHRONOUS, judge_host
from tests.unit.logs.material import recorded, text

EXPECTED = json.loads(text("driver/expected.json"))
RECORDED = sorted(name for name in EXPECTED if not name.startswith("vllm_"))


def driver(name: str) -> LogFinding:
    found = from_driver_log(read_driver_log(recorded(f"driver/{name}.txt.xz")))
    assert found is not None
    return found


def evidence(name: str, **known: bool) -> LogFinding:
    found = from_evidence(read_evidence(recorded(name)), **known)
    assert found is not None
    return found


# --- the driver's log alone -----------------------------------------------------------------------


@pytest.mark.parametrize("name", RECORDED)
def test_the_verdict_agrees_with_the_dump_or_says_that_it_cannot_tell(name: str) -> None:
    verdict, expected = driver(name).verdict, EXPECTED[name]
    assert verdict.confidence is not None
    assert verdict.confidence.level in ("medium", "low")
    if expected["exception_code"] is None:
        assert verdict.kind == "inconclusive"
        return
    assert verdict.kind == expected["kind"]
    assert verdict.exception is not None
    assert verdict.exception.code == expected["exception_code"]
    assert str(verdict.pc) in expected["pcs"]
    assert verdict.pc_source == "driver-log"
    assert verdict.instruction is None
    if verdict.kernel is not None and verdict.kernel.mangled is not None:
        assert verdict.kernel.mangled == expected["kernel"]


@pytest.mark.parametrize("name", ["oob_store", "graph", "many", "two_devices", "oob_store_nolineinfo"])
def test_an_exited_warp_has_no_kernel(name: str) -> None:
    verdict = driver(name).verdict
    assert verdict.kernel is None
    assert "kernel not known, the warp had exited" in verdict.headline
    assert verdict.confidence is not None
    assert verdict.confidence.level == "low"


def test_a_stack_of_the_next_kernel_does_not_name_the_culprit() -> None:
    found = driver("graph_full")
    assert found.verdict.kernel is None
    assert "benign_scale" in found.bystanders[0].kernel
    (mismatch,) = found.inconsistencies
    assert "frame 0 is not just past the PC" in mismatch.what


def test_the_exception_says_how_precise_it_is() -> None:
    for name, precision in (("oob_load", "warp"), ("oob_store", "sm")):
        exception = driver(name).verdict.exception
        assert exception is not None
        assert exception.precision == precision
        assert exception.driver_text == "CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS"


def test_an_assertion_line_gives_source_block_and_thread() -> None:
    verdict = driver("assert").verdict
    assert verdict.kind == "device-assert"
    assert verdict.source == facts.Source("faults.cu", 42)
    assert verdict.where is not None
    assert (verdict.where.block, verdict.where.threads) == (Dim3(0, 0, 0), (Dim3(13, 0, 0),))


def test_a_dump_that_was_asked_for_is_a_hang_and_otherwise_undecided() -> None:
    log = read_driver_log(recorded("driver/hang.txt.xz"))
    asked, unknown = from_driver_log(log, user_triggered=True), from_driver_log(log)
    assert asked is not None
    assert unknown is not None
    assert (asked.verdict.kind, unknown.verdict.kind) == ("hang", "inconclusive")
    assert unknown.verdict.confidence is not None
    assert any("__trap()" in reason for reason in unknown.verdict.confidence.reasons)


def test_a_log_cut_before_the_exception_says_so() -> None:
    found = from_driver_log(read_driver_log(recorded("driver/stack.txt.xz").splitlines()[:50]))
    assert found is not None
    assert found.verdict.kind == "inconclusive"
    assert "after 49 of 132 SMs" in found.verdict.headline


def test_the_first_exception_printed_is_the_origin_and_later_ones_are_bystanders() -> None:
    found = from_driver_log(read_driver_log(recorded("driver/one_gpu_four_processes.txt.xz")))
    assert found is not None
    assert found.verdict.kind == "device-assert"
    assert [b.kernel for b in found.bystanders] == [
        "the process that wrote 473.core",
        "the process that wrote 472.core",
    ]
    assert [f.exception.code for f in found.faults if f.exception] == [12, 6]


def test_mixed_up_streams_lower_the_confidence() -> None:
    found = from_driver_log(read_driver_log(recorded("driver/two_gpus_interleaved.txt.xz")))
    assert found is not None
    assert found.verdict.confidence is not None
    assert found.verdict.confidence.level == "low"


def test_an_assertion_without_any_dump_is_still_a_verdict() -> None:
    line = "a.cu:7: void f(int): block: [0,0,0], thread: [3,0,0] Assertion `x > 0` failed.\n"
    found = from_driver_log(read_driver_log(line * 3))
    assert found is not None
    assert found.verdict.headline == "Device-side assert failed at a.cu:7: x > 0 (3 threads reported)"
    assert found.verdict.pc is None


def test_nothing_gives_no_verdict() -> None:
    assert from_driver_log(read_driver_log("hello\n")) is None
    assert from_evidence(read_evidence("hello\n")) is None
    assert from_evidence(read_evidence(recorded("driver/unknown_flags.txt"))) is None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_such_folder", "ERROR: Failed to open file"),
        ("disk_full", "ended at 'device-table' without a message"),
    ],
)
def test_why_there_is_no_dump_is_told(name: str, words: str) -> None:
    (told,) = explain_missing(read_driver_log(recorded(f"driver/{name}.txt.xz")))
    assert words in told
    assert explain_missing(read_driver_log(recorded("driver/oob_load.txt.xz"))) == ()


# --- several kinds of evidence --------------------------------------------------------------------


def test_the_vllm_fault_with_dumps_names_the_planted_kernel() -> None:
    found = evidence("vllm/oob.log.xz")
    assert found.verdict.kernel == facts.Kernel("planted_epilogue_store", None)
    assert found.host is not None
    assert found.host.relation is None
    assert found.host.reported is not None
    assert "EngineDeadError" in (found.host.reported.text or "")


def test_the_vllm_fault_without_dumps_names_no_kernel_and_calls_the_wait_a_bystander() -> None:
    found = evidence("vllm/nodump.log.xz")
    assert found.verdict.kind == "gpu-fault"
    assert found.verdict.kernel is None
    assert found.host is not None
    assert found.host.relation == ASYNCHRONOUS
    assert found.bystanders[0].kernel == "self.copy_event.synchronize()"


def test_the_vllm_stall_is_a_hang_because_the_server_had_stalled_before_the_dump() -> None:
    found = evidence("vllm/stall.log.xz")
    assert found.verdict.kind == "hang"
    assert any("/health" in note for note in found.provenance)
    assert evidence("vllm/stall.log.xz", user_triggered=False).verdict.kind == "inconclusive"


def test_a_frozen_probe_is_a_stall() -> None:
    assert evidence("vllm/stall-probe.txt").verdict.kind == "stall"


def test_the_sanitizer_names_kernel_line_thread_and_distance() -> None:
    verdict = evidence("sanitizer/memcheck-2025.3.txt").verdict
    assert verdict.kernel == facts.Kernel("k_store(float *, long)", None)
    assert verdict.source == facts.Source("g.cu", 6)
    assert verdict.address is not None
    assert verdict.address.value == 0x80BABC800000
    assert "1098937007361 bytes after" in (verdict.address.finding or "")
    assert verdict.instruction is not None
    assert (verdict.instruction.access, verdict.instruction.width_bytes) == ("store", 4)


def test_a_kernel_log_alone_gives_the_page_and_no_kernel() -> None:
    verdict = evidence("kernel/h200-each-fault.txt").verdict
    assert (verdict.kind, verdict.kernel) == ("gpu-fault", None)
    assert verdict.address is not None
    assert verdict.address.value is None
    assert "page 0x8085e5e00000 by a write" in (verdict.address.finding or "")


def test_one_faulted_page_completes_a_driver_log() -> None:
    xid = (
        b"NVRM: Xid (PCI:0000:01:00): 31, pid=7, name=x, channel 0x0, intr 0. MMU Fault: ENGINE GRAPHICS GPC1 "
        b"GPCCLIENT_T1_3 faulted @ 0x7e9f_4f200000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ\n"
    )
    found = from_evidence(read_evidence(recorded("driver/oob_load.txt.xz") + xid))
    assert found is not None
    assert found.verdict.address is not None
    assert "0x7e9f4f200000" in (found.verdict.address.finding or "")


def test_deaths_that_no_kernel_caused_are_host_deaths() -> None:
    for line in (
        "NVRM: Xid (PCI:0000:01:00): 79, pid=7, name=x, GPU has fallen off the bus.\n",
        "kernel: Out of memory: Killed process 4321 (python3)\n",
        "(EngineCore pid=5) ERROR 05-08 19:06:38 [core.py:1] EngineCore failed to start.\n",
    ):
        found = from_evidence(read_evidence(line))
        assert found is not None
        assert found.verdict.kind == "host-death"


# --- dump and log held together -------------------------------------------------------------------


def fault(
    code: int | None = 14,
    pc: int | None = 0x7F030B7A0BA0,
    sm: int = 124,
    kernel: str = "_Z20oob_global_load_callPfS_x",
) -> facts.Fault:
    return facts.Fault(
        facts.GpuException(code, "Warp Illegal Address"),
        Hex(pc) if pc is not None else None,
        "errorpc",
        facts.Kernel("oob_global_load_call(float*, float*, long long)", kernel),
        where=facts.Where(device=0, sms=(sm,)),
    )


LOG = read_driver_log(recorded("driver/oob_load.txt.xz"))


def test_a_log_that_agrees_gives_no_inconsistency() -> None:
    assert cross_check([fault()], LOG) == ()
    assert cross_check([fault()], LOG, dump_file="/elsewhere/oob_load.core") == ()


@pytest.mark.parametrize(
    ("faults", "what"),
    [
        ([fault(code=6)], "name different exceptions"),
        ([fault(pc=0x10)], "names a PC at which the dump has no fault"),
        ([fault(sm=3)], "name different SMs"),
        ([], "the dump holds none"),
    ],
)
def test_each_disagreement_is_told(faults: list[facts.Fault], what: str) -> None:
    (found,) = cross_check(faults, LOG)
    assert what in found.what
    assert found.sources["driver_log"] is not None
    assert found.resolution


def test_another_kernel_in_the_stack_is_told_but_a_debug_builds_plain_name_is_not() -> None:
    other = fault()._replace(kernel=facts.Kernel("gemm(int)", "_Z4gemmi"))
    (found,) = cross_check([other], LOG)
    assert "The driver's stack shows oob_global_load_call" in found.what
    debug = read_driver_log(recorded("driver/shared_oob_debug.txt.xz"))
    seen = debug.dumps[0].exceptions[0]
    same = fault(5, seen.pc, 125)._replace(
        kernel=facts.Kernel(
            "void epilogue_store<128>(float*, float4 const*, int)", "_Z14epilogue_storeILi128EEvPfi"
        )
    )
    assert cross_check([same], debug) == ()


def test_an_exception_that_only_the_dump_holds_is_told() -> None:
    (found,) = cross_check([fault()], read_driver_log(recorded("driver/hang.txt.xz")))
    assert found.what == "The dump holds an exception, the driver's log names none."


def test_an_unfinished_log_beside_a_readable_dump_is_told() -> None:
    cut = read_driver_log(recorded("driver/oob_load.txt.xz").splitlines()[:-2])
    (found,) = cross_check([fault()], cut)
    assert "does not say that it was finished" in found.what


def test_a_log_of_several_dumps_is_matched_by_file_then_by_pc() -> None:
    log = read_driver_log(recorded("driver/one_gpu_four_processes.txt.xz"))
    misaligned = log.dumps[2].exceptions[0]
    mine = fault(6, misaligned.pc)._replace(kernel=None)
    assert cross_check([mine], log, dump_file="472.core") == ()
    assert cross_check([mine], log) == ()
    assert "names a PC" in cross_check([mine], log, dump_file="471.core")[0].what
    assert cross_check([fault()], log, dump_file="unrelated.core") == ()


# --- the host's report ----------------------------------------------------------------------------

MOE = (
    "Traceback (most recent call last):\n"
    '  File "/opt/app/moe.py", line 88, in fused_marlin_moe\n'
    "    out = ops.gemm(a, b)\n"
    "torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n"
)


def verdict(kernel: str, kind: str = "gpu-fault") -> facts.Verdict:
    return facts.Verdict(
        kind, "x", exception=facts.GpuException(14, "Warp Illegal Address"), kernel=facts.Kernel(kernel, None)
    )


def test_a_traceback_that_blames_another_function_is_not_causal_and_names_a_bystander() -> None:
    judged = judge_host(read_cuda_errors(MOE), verdict("cudnn_generated_fort_native_sm120_matMul"))
    assert judged.host is not None
    assert judged.host.relation == ASYNCHRONOUS
    assert [b.kernel for b in judged.bystanders] == ["fused_marlin_moe"]
    assert judged.provenance


def test_a_traceback_that_blames_the_kernel_itself_agrees() -> None:
    judged = judge_host(read_cuda_errors(MOE), verdict("void fused_marlin_moe_kernel<8>(float*)"))
    assert judged.host is not None
    assert judged.host.relation == AGREES
    assert judged.bystanders == ()


def test_with_launch_blocking_a_launching_site_is_neither_confirmed_nor_dismissed() -> None:
    judged = judge_host(read_cuda_errors(MOE), verdict("other"), launch_blocking=True)
    assert judged.host is not None
    assert judged.host.relation is None
    assert "CUDA_LAUNCH_BLOCKING" in judged.provenance[0]


def test_errors_of_another_class_are_no_traceback_to_dismiss() -> None:
    judged = judge_host(read_cuda_errors("CUDA out of memory. Tried 2 GiB\n"), verdict("k"))
    assert judged.host is not None
    assert judged.host.relation is None


def test_an_assertion_on_one_side_only_is_an_inconsistency() -> None:
    asserted = read_cuda_errors("RuntimeError: CUDA error: device-side assert triggered\n")
    assert len(judge_host(asserted, verdict("k")).inconsistencies) == 1
    assert judge_host(asserted, verdict("k", "device-assert")).inconsistencies == ()
    assert judge_host(asserted, None).inconsistencies == ()
    launch = read_cuda_errors("RuntimeError: CUDA error: unspecified launch failure\n")
    assert judge_host(launch, verdict("k", "device-assert")).inconsistencies == ()


def test_no_report_gives_no_host() -> None:
    assert judge_host(read_cuda_errors(""), verdict("k")).host is None


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(sorted(RECORDED)), max_size=3), st.binary(max_size=200), st.integers(0, 9000))
def test_any_splice_of_recordings_gives_a_verdict_or_none(names: list[str], junk: bytes, cut: int) -> None:
    data = junk.join(recorded(f"driver/{name}.txt.xz")[cut % 4000 : cut] for name in names) + junk
    log = read_driver_log(data)
    from_driver_log(log)
    from_driver_log(log, user_triggered=True)
    cross_check([fault()], log)
    explain_missing(log)
