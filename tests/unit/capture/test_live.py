"""What the output says while it comes."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.capture.live import CUDA_ERROR, DRIVER, ENGINE, LiveReader

LOGS = Path(__file__).resolve().parents[2] / "data" / "logs"


def recording(name: str) -> bytes:
    return lzma.decompress((LOGS / f"{name}.xz").read_bytes())


def test_a_driver_log_is_dumping_until_all_done_and_names_the_exception() -> None:
    live, text = LiveReader(), recording("driver/oob_load.txt")
    done = text.index(b"All done")
    live.feed("stderr", text[: done - 40])
    assert live.dumping
    live.feed("stderr", text[done - 40 :] + b"\n")
    assert not live.dumping
    assert [one.kind for one in live.findings] == [DRIVER]
    assert live.driver.dumps[0].exceptions[0].code == 14


@settings(deadline=None)
@given(st.lists(st.integers(1, 4000), min_size=1, max_size=30))
def test_how_the_bytes_are_cut_does_not_matter(sizes: list[int]) -> None:
    text = recording("driver/oob_load.txt")
    whole, pieces = LiveReader(), LiveReader()
    whole.feed("stderr", text)
    at = 0
    for size in [*sizes, len(text)]:
        pieces.feed("stderr", text[at : at + size])
        at += size
    assert pieces.findings == whole.findings
    assert pieces.driver.dumps == whole.driver.dumps


def test_a_vllm_engine_death_and_its_cuda_error_are_found() -> None:
    live = LiveReader()
    live.feed("stdout", recording("vllm/nodump.log"))
    kinds = {one.kind for one in live.findings}
    assert {ENGINE, CUDA_ERROR} <= kinds


def test_a_stalled_servers_statistics_and_health_checks_are_no_progress() -> None:
    live = LiveReader()
    stalled = (
        b"INFO loggers.py:1] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, "
        b"Running: 2 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.0%\n"
        b'INFO:     127.0.0.1:5 - "GET /health HTTP/1.1" 200 OK\n'
    )
    live.feed("stdout", stalled * 20)
    assert live.progress == 0
    assert live.bytes == len(stalled) * 20
    live.feed("stdout", stalled.replace(b"generation throughput: 0.0", b"generation throughput: 9.5"))
    assert live.progress == 1


def test_a_progress_bar_without_line_ends_is_progress() -> None:
    live = LiveReader()
    live.feed("stderr", b"\r 10%|#")
    live.feed("stderr", b"\r 20%|##")
    assert live.progress == 2


def test_ordinary_words_are_no_finding() -> None:
    live = LiveReader()
    live.feed("stdout", b"Using CUDA graphs\nall engines ready\nloading cuda kernels\n" * 50)
    assert live.findings == []


def test_a_line_of_ten_megabytes_is_held_in_part_only() -> None:
    live = LiveReader()
    for _ in range(160):
        live.feed("stdout", b"z" * (1 << 16))
    live.feed("stdout", b"\nEND cudaErrorIllegalAddress\n")
    assert [one.kind for one in live.findings] == [CUDA_ERROR]


def test_findings_are_told_once_and_bounded() -> None:
    live = LiveReader()
    live.feed("stdout", b"END cudaErrorIllegalAddress\n" * 1000)
    assert len(live.findings) == 1
    for number in range(1000):
        live.feed("stdout", b"END cudaErrorIllegalAddress %d\n" % number)
    assert len(live.findings) <= 200


@settings(deadline=None)
@given(st.binary(max_size=2000), st.sampled_from(["stdout", "stderr"]))
def test_any_bytes_are_read_without_an_error(data: bytes, stream: str) -> None:
    live = LiveReader()
    live.feed(stream, data)
    live.feed(stream, b"coredump: " + data + b"\n")


@pytest.mark.parametrize(
    "name", ["driver/user_triggered.txt", "driver/disk_full.txt", "driver/one_gpu_four_processes.txt"]
)
def test_recordings_of_special_dumps_are_read(name: str) -> None:
    live = LiveReader()
    live.feed("stderr", recording(name))
    assert live.driver_lines or live.findings
