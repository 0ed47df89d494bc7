"""Verdicts from text alone: what they claim, and what they do not."""

from __future__ import annotations

import textwrap

import pytest

from crashlab.debugger.transcript import parse
from crashlab.facts import Dim3
from crashlab.postmortem.from_transcript import TranscriptFinding, from_transcript
from crashlab.postmortem.samename import same_function
from tests.unit.debugger import recorded


def _find(text: str) -> TranscriptFinding:
    return from_transcript(parse(textwrap.dedent(text)))


FAULT = """
    [Current focus set to CUDA kernel 0, grid 7, cluster (1,0,0), cluster dim (2,1,1), block (5,0,0), thread (0,0,0), device 1, sm 9, warp 2, lane 0]

    CUDA Exception: Warp Illegal Address
    The exception was triggered at PC 0x7f10  scale(float*, int)  (scale.cu:41)
    #0  0x0000000000007f30 in scale<<<(8,1,1),(64,1,1)>>> () at scale.cu:41
"""  # noqa: E501


def test_a_fault_is_named_with_kernel_launch_and_place() -> None:
    found = _find(FAULT)
    verdict = found.verdict
    assert verdict.kind == "gpu-fault"
    assert (verdict.pc, verdict.pc_source) == (0x7F10, "cuda-gdb")
    assert verdict.exception is not None
    assert (verdict.exception.code, verdict.exception.precision) == (14, "warp")
    assert verdict.kernel is not None
    assert verdict.kernel.launch is not None
    assert (verdict.kernel.name, verdict.kernel.launch_source) == ("scale(float*, int)", "grid")
    launch = verdict.kernel.launch
    assert (launch.grid, launch.block, launch.cluster, launch.grid_id) == (
        Dim3(8, 1, 1),
        Dim3(64, 1, 1),
        Dim3(2, 1, 1),
        7,
    )
    assert verdict.where is not None
    assert (verdict.where.device, verdict.where.sms, verdict.where.block, verdict.where.warp) == (
        1,
        (9,),
        Dim3(5, 0, 0),
        2,
    )
    assert (
        verdict.headline
        == "Warp Illegal Address in scale at PC 0x7f10 (scale.cu:41) (from a cuda-gdb transcript)"
    )
    assert [fault.pc for fault in found.faults] == [0x7F10]


def test_text_alone_is_never_certain() -> None:
    verdict = _find(FAULT).verdict
    assert verdict.confidence is not None
    assert verdict.confidence.level == "medium"
    assert "without the dump" in verdict.confidence.reasons[0]
    assert verdict.address is not None
    assert verdict.address.state == "not-recoverable"
    assert "other SMs" in verdict.does_not_mean[0]


def test_a_threads_own_pc_is_not_taken_for_the_fault() -> None:
    verdict = _find("""
        CUDA Exception: Warp Illegal Address
        [Current focus set to CUDA kernel 0, grid 7, block (5,0,0), thread (0,0,0), device 1, sm 9, warp 2, lane 0]
        #0  0x0000000000007f30 in scale<<<(8,1,1),(64,1,1)>>> () at scale.cu:41
    """).verdict
    assert (verdict.kind, verdict.pc, verdict.instruction, verdict.source) == ("gpu-fault", None, None, None)
    assert verdict.confidence is not None
    assert verdict.confidence.level == "low"


def test_a_frame_of_another_kernel_does_not_give_the_launch() -> None:
    found = _find(FAULT.replace("in scale<<<", "in innocent<<<"))
    kernel = found.verdict.kernel
    assert kernel is not None
    assert (kernel.name, kernel.launch, kernel.launch_source) == ("scale(float*, int)", None, "inferred")
    assert [b.kernel for b in found.bystanders] == ["innocent"]


def test_a_device_function_belongs_to_the_kernel_of_its_clone_or_section() -> None:
    clone = _find("The exception was triggered at PC 0x10  leaf(int) [clone root(int*)]  (a.cu:1)\n").verdict
    assert clone.kernel is not None
    assert clone.function is not None
    assert (clone.kernel.name, clone.function.name) == ("root(int*)", "leaf(int)")
    symbol = _find("*> 0x10 <$_Z4rootPi$_Z4leafi+16>:\tLDG.E R2,[R2.64]\n").verdict
    assert symbol.kernel is not None
    assert symbol.function is not None
    assert (symbol.kernel.name, symbol.kernel.mangled, symbol.function.name) == (
        "root(int*)",
        "_Z4rootPi",
        "leaf(int)",
    )
    assert symbol.instruction is not None
    assert symbol.instruction.text == "LDG.E R2, [R2.64]"


def test_asserts_traps_and_hangs_stand_where_their_thread_stands() -> None:
    frame = "#0  0x0000000000007f30 in k<<<(8,1,1),(64,1,1)>>> () at k.cu:4\n"
    for text, kind in (
        ("Assertion failed.\n", "device-assert"),
        ("Program terminated with signal SIGTRAP, Trace/breakpoint trap.\n", "trap"),
        ("", "hang"),
    ):
        verdict = _find(text + frame).verdict
        assert (verdict.kind, verdict.pc) == (kind, 0x7F30)
        assert verdict.source is not None
        assert verdict.source.line == 4
        assert verdict.address is None
    assert _find(frame).faults == ()


def test_threads_that_failed_an_assert_are_named() -> None:
    verdict = from_transcript(parse(recorded.transcripts("cuda-gdb-13.0")["assert"])).verdict
    assert verdict.where is not None
    assert verdict.where.threads == (Dim3(13, 0, 0),)
    assert (verdict.where.device_name, verdict.where.sm_arch) == ("NVIDIA H200", "sm_90")


def test_lanes_alone_can_tell_the_exception() -> None:
    table = "Ln State PC ThreadIdx Exception\nDevice 0 SM 1 Warp 2\n* 0 active 0x7f30 (0,0,0) {}\n"
    fault = _find(table.format("Warp Misaligned Address")).verdict
    assert fault.exception is not None
    assert (fault.kind, fault.exception.code) == ("gpu-fault", 6)
    assert _find(table.format("Warp Assert")).verdict.kind == "device-assert"
    odd = _find(table.format("Warp Of A New Kind")).verdict
    assert odd.exception is not None
    assert (odd.exception.code, odd.exception.name) == (None, "Warp Of A New Kind")


def test_a_damaged_instruction_is_kept_as_text() -> None:
    instruction = _find("*> 0x10 <_Z1kv+16>:\tLDG.E R2,[R2.64\n").verdict.instruction
    assert instruction is not None
    assert (instruction.text, instruction.opcode) == ("LDG.E R2, [R2.64", None)


def test_an_unknown_number_is_named_by_our_table_and_said() -> None:
    verdict = _find(
        "warning: Encountered unhandled device exception (20)\nCUDA Exception: Device Unknown Exception\n"
    ).verdict
    assert verdict.exception is not None
    assert (verdict.exception.code, verdict.exception.name) == (20, "Warp Tensor Memory Access Check")
    assert verdict.confidence is not None
    assert any("older than the exception" in reason for reason in verdict.confidence.reasons)


def test_an_aborted_debugger_and_several_dumps_are_reasons_to_doubt() -> None:
    verdict = _find(
        FAULT + "terminate called after throwing an instance of 'x'\nOpening GPU coredump: b\n"
    ).verdict
    assert verdict.confidence is not None
    assert verdict.confidence.level == "low"
    assert any("died" in reason for reason in verdict.confidence.reasons)
    assert any("2 dumps" in reason for reason in verdict.confidence.reasons)


def test_nothing_seen_is_no_proof_of_innocence() -> None:
    verdict = _find("warning: No exception was found on any device\nNo CUDA kernels.\n").verdict
    assert verdict.kind == "no-fault"
    assert verdict.confidence is not None
    assert verdict.confidence.level == "low"
    assert "does not see the fault of a warp that has exited" in verdict.does_not_mean[0]


@pytest.mark.parametrize(
    ("text", "headline"),
    [
        ("hello", "The text holds nothing of cuda-gdb"),
        (
            "Opening GPU coredump: x\na.c:1: internal-error: boom\n",
            "The transcript shows nothing of the GPU: a.c:1: internal-error: boom",
        ),
    ],
)
def test_text_that_shows_nothing_is_unreadable(text: str, headline: str) -> None:
    verdict = _find(text).verdict
    assert (verdict.kind, verdict.headline) == ("unreadable", headline)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("epilogue<128>", "void epilogue<128>(float*, float4 const*, int)", True),
        ("_Z8epilogueILi128EEvPf", "void epilogue<128>(float*)", True),
        ("_Z8epilogueILi128EEvPf", "epilogue<64>", False),
        ("gemm.5x_cublas", "gemm__5x_cublas", True),
        ("gemm.part.0", "gemm", True),
        ("inner(int)", "$_Z5outerPi$_Z5inneri", True),
        ("a::f", "b::f", False),
        ("f", "g", False),
        ("f", None, None),
        ("", "f", None),
    ],
)
def test_names_differ_only_if_the_functions_do(one: str, other: str | None, same: bool | None) -> None:
    assert same_function(one, other) is same
    assert same_function(other, one) is same
