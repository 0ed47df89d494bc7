"""CUDA, torch, NCCL and library errors become events with the site that each one blames."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.logs.cuda_errors import CudaErrorEvent, read_cuda_errors, reported
from crashlab.logs.cuda_names import ERRORS, by_name, named
from crashlab.logs.victims import victim_site
from tests.unit.logs.material import recorded


def only(text: str) -> CudaErrorEvent:
    (event,) = read_cuda_errors(text).events
    return event


def test_the_recorded_traceback_blames_an_event_wait_and_is_marked_as_a_victim() -> None:
    errors = read_cuda_errors(recorded("vllm/nodump.log.xz"))
    event = errors.first_fault
    assert event is not None
    assert (event.name, event.exception, event.process, event.pid) == (
        "cudaErrorIllegalAddress",
        "torch.AcceleratorError",
        "EngineCore",
        1262,
    )
    assert event.asynchronous
    assert event.times == 2
    assert event.site is not None
    assert event.site.file.endswith("torch/cuda/streams.py")
    assert event.blamed is not None
    assert (event.blamed.function, event.blamed.code) == ("get_output", "self.copy_event.synchronize()")
    assert event.victim is not None
    assert event.victim.kind == "synchronize"
    report = reported(event)
    assert report.kernel_blamed is None
    assert report.where is not None
    assert "async_utils.py:50 in get_output" in report.where


def test_a_function_that_launches_kernels_is_named_as_the_one_blamed() -> None:
    event = only(
        "Traceback (most recent call last):\n"
        '  File "/opt/app/layers/moe.py", line 88, in fused_marlin_moe\n'
        "    out = ops.gemm(a, b)\n"
        '  File "/opt/venv/lib/python3.12/site-packages/torch/_ops.py", line 1, in __call__\n'
        "    return self._op(*args)\n"
        "torch.AcceleratorError: CUDA error: misaligned address\n"
    )
    assert event.name == "cudaErrorMisalignedAddress"
    assert event.victim is None
    assert reported(event).kernel_blamed == "fused_marlin_moe"


def test_tracebacks_of_several_prefixed_processes_are_joined_apart() -> None:
    def lines(rank: int, function: str) -> list[str]:
        head = f"(Worker_TP{rank} pid={rank + 10}) ERROR 11-29 17:12:45 [worker.py:7] "
        return [
            head + "Traceback (most recent call last):",
            head + f'  File "/app/r{rank}.py", line {rank + 1}, in {function}',
            head + "    x.tolist()",
            head + "    ^^^^^^^^^^",
            head + "RuntimeError: CUDA error: an illegal memory access was encountered",
        ]

    mixed = [line for pair in zip(lines(0, "zero"), lines(1, "one"), strict=True) for line in pair]
    events = read_cuda_errors(mixed).events
    assert [(e.process, e.blamed.function if e.blamed else None) for e in events] == [
        ("Worker_TP0", "zero"),
        ("Worker_TP1", "one"),
    ]
    assert all(e.victim and e.victim.kind == "copy-to-host" for e in events)


def test_sglang_prints_its_header_only_on_the_first_line() -> None:
    event = only(
        "[2026-02-19 12:14:43 TP3] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/sgl/scheduler.py", line 10, in run_batch\n'
        "    ids = out.item()\n"
        "RuntimeError: CUDA error: unspecified launch failure\n"
        "CUDA kernel errors might be asynchronously reported at some other API call\n"
        "\n"
    )
    assert (event.rank, event.name, event.asynchronous) == (3, "cudaErrorLaunchFailure", True)


@pytest.mark.parametrize(
    ("line", "name", "source", "victim"),
    [
        (
            "Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:368 'an illegal memory access was encountered'",
            "cudaErrorIllegalAddress",
            "custom-all-reduce",
            "custom-all-reduce",
        ),
        (
            "[rank0]:[E219 12:14:43.351647859 ProcessGroupNCCL.cpp:1595] [PG ID 2 Rank 0] Process group watchdog "
            "thread terminated with exception: CUDA error: an illegal memory access was encountered",
            "cudaErrorIllegalAddress",
            "nccl-watchdog",
            "nccl-watchdog",
        ),
        (
            "box:1:2 [0] enqueue.cc:9 NCCL WARN Cuda failure 700 'an illegal memory access was encountered'",
            "cudaErrorIllegalAddress",
            "nccl",
            "nccl-call",
        ),
        (
            "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx( handle )`",
            None,
            "cublas",
            "cublas-call",
        ),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", None, "cudnn", None),
        (
            "RuntimeError: Triton Error [CUDA]: device kernel image is invalid",
            "cudaErrorInvalidKernelImage",
            "triton",
            None,
        ),
        (
            'CUDA error at app.cu:9 code=700(cudaErrorIllegalAddress) "cudaMemcpy(a, b)"',
            "cudaErrorIllegalAddress",
            "cuda",
            "memcpy",
        ),
        (
            "cuModuleLoadData failed: CUDA_ERROR_ILLEGAL_ADDRESS",
            "cudaErrorIllegalAddress",
            "cuda",
            "module-load",
        ),
        ("  what():  CUDA error: misaligned address", "cudaErrorMisalignedAddress", "cuda", None),
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried 2 GiB",
            "cudaErrorMemoryAllocation",
            "cuda",
            None,
        ),
        ("RuntimeError: CUDA driver error: invalid program counter", "cudaErrorInvalidPc", "cuda", None),
    ],
)
def test_each_printer_of_errors_is_recognised(
    line: str, name: str | None, source: str, victim: str | None
) -> None:
    event = only(line)
    assert (event.name, event.source) == (name, source)
    assert (event.victim.kind if event.victim else None) == victim


def test_llama_cpp_spreads_one_error_over_three_lines() -> None:
    event = only(
        "0.41.568.358 E CUDA error: an illegal memory access was encountered\n"
        "0.41.568.364 E   current device: 0, in function ggml_backend_cuda_synchronize at /src/ggml-cuda.cu:2421\n"
        "0.41.568.366 E   cudaStreamSynchronize(cuda_ctx->stream())\n"
    )
    assert event.source == "llama.cpp"
    assert event.blamed is not None
    assert (event.blamed.function, event.blamed.line) == ("ggml_backend_cuda_synchronize", 2421)
    assert event.blamed.code == "cudaStreamSynchronize(cuda_ctx->stream())"
    assert event.victim is not None


def test_hints_below_an_unprefixed_error_complete_it() -> None:
    event = only(
        "RuntimeError: CUDA error: something new happened\n"
        "Search for `cudaErrorBrandNew' in https://docs.nvidia.com/cuda/ for more information.\n"
        "CUDA kernel errors might be asynchronously reported at some other API call.\n"
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
    )
    assert (event.name, event.group, event.asynchronous) == ("cudaErrorBrandNew", "unknown", True)


@pytest.mark.parametrize(
    "line",
    [
        "sync: CUDA error: no error (cudaSuccess)",
        "INFO 11-29 17:11:12 [cuda.py:476] Using FLASH_ATTN attention backend",
        "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
        "Capturing CUDA graphs: 100%",
        "the operation is not permitted here",
        "CUBLAS_STATUS_SUCCESS",
    ],
)
def test_talk_about_cuda_is_no_report(line: str) -> None:
    assert read_cuda_errors(line).events == ()


def test_a_watchdog_timeout_is_no_gpu_fault() -> None:
    event = only(
        "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE, Timeout(ms)=600000)"
    )
    assert (event.group, event.is_gpu_fault) == ("timeout", False)


def test_equal_reports_are_counted_and_different_ones_bounded() -> None:
    errors = read_cuda_errors("CUDA error: misaligned address\n" * 50)
    assert [event.times for event in errors.events] == [50]
    many = read_cuda_errors("".join(f"CUDA error: misaligned address {i}\n" for i in range(2000)))
    assert len(many.events) == 512
    assert many.dropped == 2000 - 512


def test_a_traceback_that_the_log_cuts_is_still_told() -> None:
    errors = read_cuda_errors('Traceback (most recent call last):\n  File "a.py", line 3, in f\n    g()\n')
    (one,) = errors.tracebacks
    assert (one.exception, one.innermost.function if one.innermost else None) == (None, "f")


def test_very_deep_stacks_keep_both_ends() -> None:
    frames = "".join(f'  File "a.py", line {i}, in f{i}\n' for i in range(500))
    (one,) = read_cuda_errors(f"Traceback (most recent call last):\n{frames}ValueError: no\n").tracebacks
    assert len(one.frames) == 64
    assert (one.frames[0].function, one.frames[-1].function) == ("f0", "f499")


@pytest.mark.parametrize("row", ERRORS, ids=lambda row: row.name)
def test_every_known_error_is_found_by_name_and_by_message(row: object) -> None:
    name, message = row.name, row.message  # type: ignore[attr-defined]
    assert named(f"call failed with {name}.") == row
    assert named(f"CUDA error: {message}", in_cuda_context=True) == row
    assert by_name(name.upper()) == row


def test_general_messages_need_a_cuda_context() -> None:
    assert named("invalid argument") is None
    assert named("Cuda failure 716") is not None
    assert named("CUDA_ERROR_SOMETHING_NEW").group == "unknown"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("event.synchronize()", "synchronize"),
        ("ids.tolist()", "copy-to-host"),
        ("self.graph.replay()", "graph-replay"),
        ("torch.cuda.set_device(0)", "set-device"),
        ("cudaMemcpyAsync(a, b)", "memcpy"),
        ("mod = driver.load_binary(name)", "module-load"),
        ("cublasGemmEx(", "cublas-call"),
        ("dist.all_reduce(x)", "nccl-call"),
        ("torch.cuda.empty_cache()", "allocator"),
        ("my_kernel[grid](x)", None),
    ],
)
def test_victim_sites_are_told_from_launches(code: str, kind: str | None) -> None:
    site = victim_site(None, code)
    assert (site.kind if site else None) == kind


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "Traceback (most recent call last):",
                '  File "a.py", line 3, in f',
                "    x.item()",
                "RuntimeError: CUDA error: misaligned address",
                "CUDA kernel errors might be asynchronously reported",
                "Search for `cudaErrorAssert' in",
                "  current device: 0, in function f at a.cu:3",
                "(W pid=1) ERROR 11-29 17:12:45 [a.py:1] ",
                "[rank0]: ",
                "",
            ]
        )
        | st.text(max_size=30),
        max_size=40,
    )
)
def test_any_mixture_of_lines_is_read_without_complaint(lines: list[str]) -> None:
    errors = read_cuda_errors(lines)
    assert all(event.line >= 1 and event.times >= 1 for event in errors.events)
