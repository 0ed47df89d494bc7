"""Serving logs become the right story, without any dump."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.facts import EnvFact
from crashlab.logs.keyvalues import MAX_KEYS, key_values
from crashlab.logs.serving import ServingReader, read_serving
from crashlab.logs.serving_facts import ServingStory
from crashlab.logs.text import read_lines
from tests.support import golden
from tests.unit.logs.material import as_json, recorded


def vllm(name: str) -> ServingStory:
    return read_serving(recorded(f"vllm/{name}.log.xz"))


@pytest.mark.parametrize("name", ["oob", "nodump", "stall"])
def test_recorded_vllm_logs_keep_their_story(name: str, update_golden: bool) -> None:
    story = vllm(name)._replace(errors=vllm(name).errors._replace(tracebacks=()))
    golden.check(f"logs/vllm/{name}.json", as_json(story), update=update_golden)


def test_a_fault_with_dumps_on_kills_the_engine_and_blames_nothing() -> None:
    story = vllm("oob")
    assert (story.server, story.outcome, story.died) == ("vllm", "gpu-fault", "EngineCore (pid 793)")
    assert story.died_at == "11-29 17:11:38"
    assert story.blamed is not None
    assert story.blamed.text is not None
    assert "EngineDeadError" in story.blamed.text
    assert story.blamed.where is None
    assert story.driver.dumps[0].exceptions[0].stacks[0].frames[0].name == "planted_epilogue_store"
    assert story.exit_code_lies is not None
    assert "exit code can be 0" in story.exit_code_lies
    assert any("stack trace that was never printed" in said for said in story.sentences)


def test_the_same_fault_without_dumps_blames_an_event_wait() -> None:
    story = vllm("nodump")
    assert (story.outcome, story.died, story.died_at) == (
        "gpu-fault",
        "EngineCore (pid 1262)",
        "11-29 17:12:45",
    )
    assert story.blamed is not None
    assert story.blamed.where is not None
    assert story.blamed.where.endswith("in get_output: self.copy_event.synchronize()")
    assert any("a wait for the GPU" in said and "names no culprit" in said for said in story.sentences)
    assert story.exit_code_lies is not None


def test_a_stall_is_seen_although_health_answers_and_the_dump_is_put_in_its_place() -> None:
    story = vllm("stall")
    assert (story.outcome, story.died) == ("stall", "EngineCore (pid 1562)")
    assert story.stalled is not None
    assert (story.stalled.running, story.stalled.time) == (16, "11-29 17:14:09")
    assert story.http.health_ok_after_stall == 4
    assert story.http.health_failed == 0
    assert any("as one that is asked for on a hang" in said for said in story.sentences)
    kinds = [event.kind for event in story.events]
    assert kinds.index("stalled") < kinds.index("gpu-dump") < kinds.index("engine-died")


def test_versions_come_with_their_line_even_from_paths() -> None:
    story = vllm("oob")
    assert story.environment["vllm"] == EnvFact("0.25.1", "log:line 3")
    assert story.environment["flashinfer"] == EnvFact("0.6.13", "log:line 38")
    assert story.environment["arch"] == EnvFact("sm_90a", "log:line 38")


def test_what_really_ran_is_told_backends_overrides_and_graphs() -> None:
    story = vllm("nodump")
    assert ("attention", "FLASH_ATTN attention") in [(b.role, b.name) for b in story.backends]
    assert any("Overriding to NONE" in text for text in story.overrides)
    assert story.cuda_graphs is not None
    assert story.cuda_graphs.state == "off"
    assert "Skipping CUDA graph capture" in story.cuda_graphs.reason
    assert story.config["tensor_parallel_size"] == "1"
    assert story.config["kv_cache_dtype"] == "auto"


STATISTICS = (
    "(APIServer pid=1) INFO 11-29 17:14:{at} [loggers.py:273] Engine 000: Avg prompt throughput: {p} tokens/s, "
    "Avg generation throughput: {g} tokens/s, Running: {r} reqs, Waiting: 0 reqs, GPU KV cache usage: 0.0%\n"
)


def statistics(*rows: tuple[float, float, int]) -> str:
    return "".join(STATISTICS.format(at=10 + i, p=p, g=g, r=r) for i, (p, g, r) in enumerate(rows))


def test_one_line_of_zero_throughput_may_be_a_long_prefill() -> None:
    story = read_serving(statistics((0.0, 2036.7, 16), (0.0, 0.0, 16)))
    assert story.outcome is None
    assert any("long prefill" in said for said in story.sentences)


def test_zero_throughput_that_goes_on_is_a_stall() -> None:
    assert read_serving(statistics((1.0, 9.0, 16), (0.0, 0.0, 16), (0.0, 0.0, 16))).outcome == "stall"


def test_progress_ends_a_stall_and_an_idle_server_has_none() -> None:
    assert read_serving(statistics((0.0, 0.0, 4), (0.0, 0.0, 4), (0.0, 5.0, 4))).stalled is None
    assert read_serving(statistics((0.0, 0.0, 0), (0.0, 0.0, 0))).outcome is None


def test_one_stalled_engine_of_several_is_not_hidden_by_the_others_progress() -> None:
    lines = statistics((1.0, 9.0, 4), (0.0, 0.0, 4), (0.0, 0.0, 4)).splitlines()
    other = [line.replace("Engine 000", "Engine 001") for line in statistics((1.0, 9.0, 4)).splitlines() * 3]
    story = read_serving([line for pair in zip(lines, other, strict=True) for line in pair])
    assert story.outcome == "stall"
    assert story.stalled is not None
    assert story.stalled.engine == 0


def test_requests_that_end_without_tokens_end_a_stall() -> None:
    assert read_serving(statistics((0.0, 0.0, 4), (0.0, 0.0, 4), (0.0, 0.0, 0))).stalled is None


def test_events_of_thousands_of_processes_stay_bounded() -> None:
    story = read_serving(f"(EngineCore pid={i}) Segmentation fault\n" for i in range(3000))
    assert len(story.events) == 1024


def test_long_runs_keep_the_first_and_the_last_statistics() -> None:
    story = read_serving(statistics(*((1.0, float(i), 1) for i in range(500))))
    assert len(story.throughput) == 32
    assert (story.throughput[0].generation, story.throughput[-1].generation) == (0.0, 499.0)


def test_shared_memory_silence_is_counted_and_means_a_stall() -> None:
    line = (
        "(EngineCore pid=5) INFO 10-27 13:45:16 [shm_broadcast.py:466] No available shared memory broadcast block "
        "found in 60 seconds. This typically happens when some processes are hanging\n"
    )
    story = read_serving(line * 90)
    assert story.outcome == "stall"
    assert sum(event.times for event in story.events) == 90


def test_a_dead_worker_is_named_by_the_line_that_reports_it() -> None:
    story = read_serving(
        "(Worker_TP1 pid=77) INFO 10-27 13:45:00 [worker.py:1] hello\n"
        "INFO:     Application startup complete.\n"
        "(EngineCore pid=5) ERROR 10-27 13:45:16 [multiproc_executor.py:1] Worker proc Worker_TP1 died unexpectedly\n"
    )
    assert (story.outcome, story.died) == ("host-death", "Worker_TP1 (pid 77)")


def test_a_server_that_fails_before_it_is_ready_is_never_ready() -> None:
    story = read_serving(
        "(EngineCore pid=5) ERROR 05-08 19:06:38 [core.py:1136] EngineCore failed to start.\n"
        "(EngineCore pid=5) ERROR 05-08 19:06:38 [core.py:1136] Traceback (most recent call last):\n"
        '(EngineCore pid=5) ERROR 05-08 19:06:38 [core.py:1136]   File "/a/b.py", line 3, in start\n'
        "(EngineCore pid=5) ERROR 05-08 19:06:38 [core.py:1136] RuntimeError: FlashInfer requires GPUs with sm75\n"
    )
    assert (story.outcome, story.died) == ("never-ready", "EngineCore (pid 5)")
    assert "never said that it was ready" in story.sentences[0]
    assert story.errors.tracebacks[0].message == "FlashInfer requires GPUs with sm75"


def test_running_out_of_gpu_memory_is_no_gpu_fault() -> None:
    story = read_serving(
        "INFO:     Application startup complete.\n"
        "(EngineCore pid=5) ERROR 05-08 19:06:38 [core.py:1] EngineCore encountered a fatal error.\n"
        "(EngineCore pid=5) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n"
    )
    assert story.outcome == "out-of-memory"


def test_a_device_assert_is_told_by_its_line() -> None:
    story = read_serving(
        "/w/Gather.cu:163: operator(): block: [0,0,0], thread: [9,0,0] Assertion `i < n` failed.\n"
        "(EngineCore pid=5) RuntimeError: CUDA error: device-side assert triggered\n"
    )
    assert story.outcome == "device-assert"
    assert [event.kind for event in story.events] == ["device-assert", "cuda-error"]


def test_a_dump_without_an_exception_and_without_a_stall_decides_nothing() -> None:
    story = read_serving(recorded("driver/trap.txt.xz").decode() + "engine core exited unexpectedly\n")
    assert story.outcome == "inconclusive"
    assert any("asked for, or a __trap()" in said for said in story.sentences)


def test_an_orderly_shutdown_without_a_failure_is_no_failure() -> None:
    story = read_serving(
        "INFO:     Application startup complete.\nINFO:     Application shutdown complete.\n"
        "(APIServer pid=1) WARNING 11-29 17:12:45 [utils.py:626] Process manager: force killing remaining processes\n"
    )
    assert (story.outcome, story.died, story.exit_code_lies, story.blamed) == (None, None, None, None)
    assert "does not mean there was none" in story.sentences[-1]


SGLANG = """\
[2026-01-06 02:58:00] server_args=ServerArgs(model_path='/m', tp_size=2, attention_backend='fa3', port=30000)
[2026-01-06 02:58:05 TP0] Capture cuda graph begin. This can take up to several minutes.
[2026-01-06 02:58:09 TP0] Capture cuda graph end. Time elapsed: 4.00 s.
[2026-01-06 02:58:10] The server is fired up and ready to roll!
[2026-01-06 02:58:11 TP0] Decode batch. #running-req: 2, #token: 9, token usage: 0.1, gen throughput (token/s): 10.92, #queue-req: 1
[2026-01-06 03:58:11 TP0] Watchdog timeout (self.watchdog_timeout=300)
[2026-01-06 03:58:12] Received sigquit from a child proces. It usually means the child failed.
"""  # noqa: E501


def test_sglang_logs_tell_the_same_kind_of_story() -> None:
    story = read_serving(SGLANG)
    assert (story.server, story.outcome, story.died) == ("sglang", "stall", "the engine process")
    assert story.config["attention_backend"] == "fa3"
    assert (story.throughput[0].running, story.throughput[0].waiting) == (2, 1)
    assert story.cuda_graphs is not None
    assert story.cuda_graphs.state == "captured"
    assert story.ready is not None


LLAMA = """\
ggml_cuda_init: found 1 CUDA devices:
  Device 0: NVIDIA GeForce RTX 5090, compute capability 12.0, VMM: yes
build: 7621 (e57f52334) with GNU 15.2.1 for Linux x86_64
0.10.929.937 I srv  llama_server: listening on http://127.0.0.1:8080
0.41.568.358 E CUDA error: an illegal memory access was encountered
0.41.568.364 E   current device: 0, in function ggml_cuda_op_mul_mat at /src/ggml-cuda.cu:107
Aborted (core dumped)
"""


def test_llama_cpp_logs_tell_gpu_build_and_fault() -> None:
    story = read_serving(LLAMA)
    assert (story.server, story.outcome) == ("llama.cpp", "gpu-fault")
    assert {k: v.value for k, v in story.environment.items()} == {
        "gpu": "NVIDIA GeForce RTX 5090",
        "arch": "sm_120",
        "llama_cpp": "7621 (e57f52334)",
    }
    assert story.blamed is not None
    assert story.blamed.kernel_blamed == "ggml_cuda_op_mul_mat"
    assert story.sentences[0].startswith("llama.cpp 7621")


ENVIRONMENT = """\
PyTorch version                  : 2.11.0+cu130
CUDA runtime version             : 12.8.93
Nvidia driver version            : 580.95.05
cuDNN version                    : Could not collect
vLLM Version                     : 0.25.1.dev3+gabc
GPU 0: NVIDIA RTX PRO 6000 Blackwell Server Edition
[pip3] nvidia-cudnn-cu13==9.19.0.56
[pip3] flashinfer-python==0.6.13
| NVIDIA-SMI 580.95.05   Driver Version: 580.95.05   CUDA Version: 13.0 |
NCCL version 2.28.9+cuda13.0
"""


def test_collected_environments_and_tool_output_give_versions() -> None:
    found = {k: v.value for k, v in read_serving(ENVIRONMENT).environment.items()}
    assert found == {
        "torch": "2.11.0+cu130",
        "torch_cuda": "13.0",
        "cuda_toolkit": "12.8.93",
        "driver": "580.95.05",
        "vllm": "0.25.1.dev3+gabc",
        "gpu": "NVIDIA RTX PRO 6000 Blackwell Server Edition",
        "cudnn": "9.19.0.56",
        "flashinfer": "0.6.13",
        "cuda_driver": "13.0",
        "nccl": "2.28.9+cuda13.0",
    }


@pytest.mark.parametrize(
    ("text", "role", "name"),
    [
        ("Using AttentionBackendEnum.FLASHINFER backend.", "attention", "AttentionBackendEnum.FLASHINFER"),
        ("Using 'MARLIN' Mxfp4 MoE backend", "moe", "MARLIN' Mxfp4 MoE"),
        ("Using FlashInfer for top-p & top-k sampling.", "sampler", "Using FlashInfer for top-p & top-k sampling"),
        ("Using FlashInferCutlassNvFp4Linear kernel", "linear", "FlashInferCutlassNvFp4Linear"),
        ("DeepGEMM E8M0 enabled on current platform", "linear", "DeepGEMM E8M0 enabled"),
        ("Attention backend not set. Use fa3 backend by default.", "attention", "fa3"),
    ],
)  # fmt: skip
def test_announced_choices_are_kept_with_their_role(text: str, role: str, name: str) -> None:
    (backend,) = read_serving(f"(EngineCore pid=1) INFO 11-29 17:11:12 [a.py:1] {text}\n").backends
    assert (backend.role, backend.name) == (role, name)


@pytest.mark.parametrize(
    ("lines", "state"),
    [
        (["Capturing CUDA graphs (decode, FULL):   3%", "Graph capturing finished in 19 secs"], "captured"),
        (["Capturing CUDA graphs (mixed):   3%"], "capturing"),
        (["x 'cudagraph_mode': <CUDAGraphMode.FULL_AND_PIECEWISE: (2, 1)>, y"], "configured"),
        (["with enforce_eager=True, y"], "off"),
        (
            ["Graph capturing finished in 19 secs", "again 'cudagraph_mode': <CUDAGraphMode.NONE: 0>"],
            "captured",
        ),
    ],
)
def test_the_state_of_cuda_graphs_follows_what_was_done(lines: list[str], state: str) -> None:
    graphs = read_serving(lines).cuda_graphs
    assert graphs is not None
    assert graphs.state == state


def test_key_values_respect_brackets_and_quotes_and_stop_at_the_end() -> None:
    found = key_values("a='x, y', b=C(d=1, e=[2, 3]), f={'g': <H.I: 0>}, j=None), k=not here")
    assert found == {"a": "x, y", "b": "C(d=1, e=[2, 3])", "f": "{'g': <H.I: 0>}", "j": "None"}


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=300))
def test_any_key_value_text_is_taken_apart_within_bounds(text: str) -> None:
    assert len(key_values(text)) <= MAX_KEYS


def test_dumping_is_visible_while_the_log_grows() -> None:
    reader = ServingReader()
    for line in read_lines(["coredump: Starting GPU coredump generation"]):
        reader.feed(line)
    assert reader.dumping


@settings(max_examples=120, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "(EngineCore pid=1) ",
                "ERROR 11-29 17:12:45 [core.py:1233] ",
                "EngineCore encountered a fatal error.",
                "engine core exited unexpectedly",
                "Application shutdown complete",
                '"POST /v1/completions HTTP/1.1" 500',
                '"GET /health HTTP/1.1" 200',
                "Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, Running: 1 reqs, "
                "Waiting: 0 reqs",
                "Avg prompt throughput: ... tokens/s, Avg generation throughput: .. tokens/s, Running: 1 reqs, "
                "Waiting: 0 reqs",
                "with config: a=1, b=(",
                "Using X backend",
                "torch==2.1",
                "coredump: Starting GPU coredump generation",
                "\n",
                "\n",
            ]
        )
        | st.text(max_size=20),
        max_size=40,
    )
)
def test_any_mixture_becomes_a_story_without_complaint(parts: list[str]) -> None:
    assert read_serving("".join(parts)).sentences
