"""No line, however long or crafted, costs more than linear time or unbounded memory."""

from __future__ import annotations

import time
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.logs.detect import EvidenceReader, read_evidence
from crashlab.logs.text import LineSplitter
from tests.unit.logs.material import recorded

SEEDS = [
    "driver/oob_load.txt.xz",
    "vllm/nodump.log.xz",
    "kernel/h200-each-fault.txt",
    "sanitizer/memcheck-2025.3.txt",
    "vllm/stall-probe.txt",
]

CRAFTED = [
    "coredump: #0 0x1 ",
    "coredump: ",
    "[17:00:00.0] coredump: - Warp: x ",
    "a.cu:1: f: block: [0,0,0], thread: [0,0,0] Assertion `",
    "NVRM: Xid (PCI:0000:01:00): 31, MMU Fault: ENGINE A B C faulted @ 0x",
    "NVRM: Xid (0000): ",
    "NVRM: loading NVIDIA UNIX ",
    "========= Invalid __global__ read of size ,,,,",
    "=========     at [clone a] [clone b] +0x1 in a:1 in b:2 ",
    "=========     and is 1,1,1 bytes after the nearest allocation at 0x1 ",
    "CUDA error: in at an illegal memory ",
    "Cuda failure 'x custom_all_reduce.cuh:1 '",
    "engine core proc died engine core exited Worker proc ",
    "Decode batch #running-req: 1, gen throughput (token/s): 1, ",
    "Avg prompt throughput: 1 tokens/s, Avg generation throughput: 1 tokens/s, Running: 1 reqs, ",
    "Using a Using b backend-kernel Using FlashInfer for sampling FlashInfer sampling disabled ",
    "server_args=ServerArgs(a=[[[[((((' ",
    "vllm:num_requests_running{a} 1 vllm:x{ ",
    "(a pid=1) (b pid=2) (EngineCore rank=1 pid=",
    "Nov 29 17:11:38 a b: 2026-11-29T17:11:38 ",
    "torch==1 torch==2 GPU 0: NVIDIA A - - - Device 0: NVIDIA B ",
    '  File "a", line 1, in x File "b", line 2',
    "\x1b[1;\x1b[\x1b]0;a",
    "PyTorch version                                  ",
    "flashinfer_autotune_cache/1.1.1.1/90/flashinfer/1.1/",
]


@pytest.mark.parametrize("seed", CRAFTED, ids=range(len(CRAFTED)))
def test_a_crafted_line_costs_no_more_than_a_few_times_a_plain_one(seed: str) -> None:
    def cost(text: str) -> float:
        best = 9.0
        for _ in range(2):
            started = time.process_time()
            read_evidence((text + "\n") * 3)
            best = min(best, time.process_time() - started)
        return best

    size = 64 * 1024
    assert cost((seed * (size // len(seed) + 1))[:size]) < 1.0 + 20 * cost("x" * size)


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(SEEDS), st.data())
def test_mutated_recordings_are_read_without_complaint(name: str, data: st.DataObject) -> None:
    raw = bytearray(recorded(name)[:12000])
    for _ in range(data.draw(st.integers(1, 12))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 40))] = data.draw(st.binary(max_size=12))
    read_evidence(bytes(raw))


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=1500))
def test_any_bytes_are_read_without_complaint(raw: bytes) -> None:
    read_evidence(raw)


def test_memory_stays_bounded_while_a_log_of_any_length_streams_through() -> None:
    reader, splitter = EvidenceReader(), LineSplitter()
    block = b"".join(recorded(name) for name in SEEDS)
    long_line = b"y" * (1 << 20)

    def feed(times: int) -> int:
        for _ in range(times):
            for chunk in (block, long_line, b"\n"):
                for line in splitter.feed(chunk):
                    reader.feed(line)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        feed(6)
        settled = feed(6)
        assert feed(12) < settled + (1 << 20)
    finally:
        tracemalloc.stop()
    evidence = reader.result()
    assert evidence.lines > 20_000
