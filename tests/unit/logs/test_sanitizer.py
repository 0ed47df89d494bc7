"""compute-sanitizer's blocks become faults; its noise and other tools' lines do not."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.facts import Dim3
from crashlab.logs.sanitizer import NearestAllocation, read_sanitizer
from tests.support import golden
from tests.unit.logs.material import as_json, recorded


def test_the_recorded_report_keeps_its_reading(update_golden: bool) -> None:
    log = read_sanitizer(recorded("sanitizer/memcheck-2025.3.txt"))
    golden.check("logs/sanitizer/memcheck-2025.3.json", as_json(log), update=update_golden)


def test_a_device_function_is_told_from_its_kernel() -> None:
    first = read_sanitizer(recorded("sanitizer/memcheck-2025.3.txt")).faults[0]
    assert first.kernel == "k_store(float *, long)"
    assert (first.function, first.offset) == ("put(float *, long, float)", 0xE0)
    assert (first.file, first.source_line) == ("g.cu", 6)
    assert first.device_frames == ("k_store(float *, long)+0x60 in g.cu:7",)
    assert (first.space, first.access, first.size, first.times) == ("global", "write", 4, 3)
    assert first.nearest is not None
    assert (first.nearest.distance, first.nearest.side) == (1098937007361, "after")


OLD = """\
========= COMPUTE-SANITIZER
========= Invalid __shared__ write of size 16 bytes
=========     at 0x540 in gemm::Kernel<a, b>(Params)
=========     by thread (1,2,3) in block (4,5,6)
=========     Address 0x1000 is out of bounds
=========     and is 140,336,139,385,056 bytes before the nearest allocation at 0x7fa3 of size 1,024 bytes
=========     Saved host backtrace up to driver entry point
=========         Host Frame: [0x2774ec]
=========                in /usr/lib/libcuda.so.1
========= Invalid __global__ read of size 4 bytes
=========     at 0x00000170 in demo.cu:6:unaligned_kernel(void)
=========     Address 0x400100001 is misaligned
========= ERROR SUMMARY: 1,002 errors
"""


def test_older_spellings_and_thousands_separators_are_read() -> None:
    log = read_sanitizer(OLD)
    shared, other = log.faults
    assert (shared.kernel, shared.offset, shared.size) == ("gemm::Kernel<a, b>(Params)", 0x540, 16)
    assert (shared.thread, shared.block) == (Dim3(1, 2, 3), Dim3(4, 5, 6))
    assert shared.nearest == NearestAllocation(140336139385056, "before", 0x7FA3, 1024)  # type: ignore[arg-type]
    assert shared.host_frames == ("[0x2774ec]",)
    assert (other.kernel, other.file, other.source_line) == ("unaligned_kernel(void)", "demo.cu", 6)
    assert (other.problem, other.nearest) == ("misaligned", None)
    assert log.total == 1002


def test_probing_errors_of_libraries_are_noise_and_others_are_not() -> None:
    log = read_sanitizer(
        '========= Program hit cudaErrorNoKernelImageForDevice (error 209) due to "no kernel image" on CUDA API '
        "call to cudaFuncGetAttributes.\n"
        '========= Program hit cudaErrorIllegalAddress (error 700) due to "x" on CUDA API call to cudaFree.\n'
    )
    assert log.noise == 1
    assert [(f.kind, f.api_error, f.api_call) for f in log.faults] == [
        ("api-error", "cudaErrorIllegalAddress", "cudaFree")
    ]


def test_other_tools_blocks_have_their_kinds() -> None:
    log = read_sanitizer(
        "========= Error: Race reported between Write access at k(int*)+0x70 in r.cu:4\n"
        "=========     and Read access at k(int*)+0x90 in r.cu:5 [508 hazards]\n"
        "========= Leaked 1,024 bytes at 0x7ff\n"
        "========= Uninitialized __global__ memory read of size 4 bytes\n"
        "=========     at k()+0x10\n"
        "========= Barrier error detected. Divergent thread(s) in block\n"
        "========= Trace/breakpoint trap\n"
    )
    assert [fault.kind for fault in log.faults] == ["race", "leak", "uninitialized", "barrier", "trap"]
    assert (log.faults[0].kernel, log.faults[0].source_line) == ("k(int*)", 4)


def test_lines_of_the_program_in_between_are_ignored() -> None:
    log = read_sanitizer(
        "========= Invalid __local__ read of size 8 bytes\nhello\n=========     at f()+0x8\n"
    )
    assert (log.faults[0].kernel, log.faults[0].space) == ("f()", "local")


def test_long_reports_stay_bounded() -> None:
    log = read_sanitizer(
        "".join(
            f"========= Invalid __global__ read of size 4 bytes\n=========     at f{i}()+0x8\n"
            + "=========         Host Frame: x\n" * 100
            for i in range(1100)
        )
    )
    assert (len(log.faults), log.dropped) == (1024, 76)
    assert len(log.faults[0].host_frames) == 64


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "========= ",
                "=========     ",
                "Invalid __global__ read of size 4 bytes",
                "at f()+0x8 in a.cu:3",
                "at [clone k] f",
                "Address 0x1 is out of bounds",
                "and is 1,0 bytes after the nearest allocation at 0x1 of size , bytes",
                "by thread (1,2,3) in block (1,2,3)",
                "Host Frame:",
                "ERROR SUMMARY: , errors",
                "\n",
            ]
        )
        | st.text(max_size=16),
        max_size=40,
    )
)
def test_any_mixture_is_read_without_complaint(parts: list[str]) -> None:
    read_sanitizer("".join(parts))
