"""A vLLM server's log alone tells its story: what died, when, what was blamed, and why the exit code lies.

Recorded with vLLM 0.25.1 on an H200: a planted out-of-bounds store with dumps on, the same without, and a
planted spin that stalls the engine without a word.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.command import run_cli
from tests.unit.logs.material import recorded


class Told(NamedTuple):
    """What ``crashlab analyze --log vllm.log`` says: on one line, and as JSON."""

    text: str
    report: dict[str, Any]

    @property
    def verdict(self) -> dict[str, Any]:
        found: dict[str, Any] = self.report["verdict"]
        return found

    @property
    def story(self) -> str:
        return " ".join(self.report["provenance"])


def analyze(folder: Path, content: bytes, *more: str) -> Told:
    log = folder / "vllm.log"
    log.write_bytes(content)
    arguments = ("analyze", "--log", str(log), *(part for path in more for part in ("--log", path)))
    text, data = run_cli(*arguments, "-v"), run_cli(*arguments, "--json")
    assert text.err == ""
    return Told(" ".join(text.out.split()), json.loads(data.out))


def log(name: str) -> bytes:
    return recorded(f"vllm/{name}.log.xz")


STORIES = {
    "oob": (
        "EngineCore (pid 793) died at 11-29 17:11:38; the API server printed EngineDeadError 17 times.",
        "EngineDeadError points at a stack trace that was never printed",
        "The API server shut down in good order (line 1995) after EngineCore (pid 793) had died: its exit code "
        "can be 0 and proves nothing",
        "29 requests were answered with an error, after 359 accepted ones.",
        "CUDA graphs were off",
    ),
    "nodump": (
        "EngineCore (pid 1262) died at 11-29 17:12:45; the API server printed EngineDeadError 17 times.",
        "At 11-29 17:12:45 EngineCore (pid 1262) reported cudaErrorIllegalAddress",
        "blaming /opt/vllm/site/vllm/v1/worker/gpu/async_utils.py:50 in get_output: self.copy_event.synchronize(); "
        "that is a wait for the GPU (event, stream or device), which only reports; it names no culprit.",
        "The API server shut down in good order (line 2097) after EngineCore (pid 1262) had died: its exit code "
        "can be 0 and proves nothing",
    ),
    "stall": (
        "At 11-29 17:14:09 it reported 0.0 tokens/s with 16 requests running: work in flight, no progress, while "
        "/health went on answering 200 (4 times).",
        "the driver wrote a GPU core dump without any exception (complete, stall.1562.core), as one that is asked "
        "for on a hang; the engine's death afterwards is a consequence of that dump.",
        "EngineCore (pid 1562) died at 11-29 17:14:26",
        "after EngineCore (pid 1562) had died: its exit code can be 0 and proves nothing",
    ),
}


@pytest.mark.parametrize("name", sorted(STORIES))
def test_the_whole_story_stands_in_the_report_and_on_the_terminal(tmp_path: Path, name: str) -> None:
    told = analyze(tmp_path, log(name))
    for sentence in STORIES[name]:
        assert sentence in told.story
        assert sentence in told.text
    assert "vLLM 0.25.1 with model tiny was ready at line 86." in told.story


def test_with_dumps_on_the_drivers_lines_name_the_kernel_that_nobody_blames(tmp_path: Path) -> None:
    told = analyze(tmp_path, log("oob"))
    assert told.verdict["kind"] == "gpu-fault"
    assert told.verdict["exception"]["code"] == 14
    assert told.verdict["kernel"]["name"] == "planted_epilogue_store"
    assert told.verdict["pc_source"] == "driver-log"
    assert told.verdict["instruction"] is None, "no dump was read"
    assert "EngineDeadError" in told.report["host"]["reported"]["text"]
    assert told.report["host"]["reported"]["where"] is None


def test_without_dumps_the_blame_is_a_wait_and_no_kernel_is_claimed(tmp_path: Path) -> None:
    told = analyze(tmp_path, log("nodump"))
    assert told.verdict["kind"] == "gpu-fault"
    assert told.verdict["kernel"] is None
    assert told.verdict["pc"] is None
    assert told.verdict["confidence"]["level"] == "low"
    assert "asynchronous: not causal" in told.text
    innocent = {one["kernel"] for one in told.report["bystanders"]}
    assert any(name.startswith("self.copy_event.synchronize") for name in innocent)


def test_a_silent_stall_is_a_hang_once_its_dump_was_asked_for(tmp_path: Path) -> None:
    told = analyze(tmp_path, log("stall"))
    assert told.verdict["kind"] == "hang"
    assert told.verdict["exception"] is None


def without_driver_lines(name: str) -> bytes:
    """The same log when the driver's words went elsewhere: containers that keep stdout only."""
    return b"".join(line for line in log(name).splitlines(keepends=True) if b"coredump:" not in line)


def test_without_the_drivers_words_the_engines_death_is_all_that_is_claimed(tmp_path: Path) -> None:
    told = analyze(tmp_path, without_driver_lines("oob"))
    assert told.verdict["kind"] == "host-death"
    assert "It was EngineCore (pid 793), at 11-29 17:11:38." in told.verdict["headline"]
    assert "its exit code can be 0 and proves nothing" in told.story
    assert told.verdict["does_not_mean"] == [
        "No GPU error in the log does not mean that no kernel misbehaved."
    ]


def test_a_stall_without_any_dump_is_one_by_the_servers_own_figures(tmp_path: Path) -> None:
    """Before the dump was asked for; a second line of zeros is what a longer wait would have printed."""
    before = log("stall").partition(b"coredump:")[0].rpartition(b"\n")[0] + b"\n"
    zeros = [
        line
        for line in before.splitlines(keepends=True)
        if b"generation throughput: 0.0 tokens/s, Running: 16" in line
    ]
    assert len(zeros) == 1
    told = analyze(tmp_path, before + zeros[0].replace(b"17:14:09", b"17:14:19"))
    assert told.verdict["kind"] == "stall"
    assert "while /health went on answering 200" in told.story
    assert told.report["host"] is None


def test_a_probe_beside_the_log_confirms_what_one_line_of_zeros_cannot(tmp_path: Path) -> None:
    before = log("stall").partition(b"coredump:")[0].rpartition(b"\n")[0] + b"\n"
    assert analyze(tmp_path, before).verdict["kind"] == "inconclusive", "it may be a long prefill"
    probe = tmp_path / "probe.txt"
    probe.write_bytes(recorded("vllm/stall-probe.txt"))
    told = analyze(tmp_path, before, str(probe))
    assert told.verdict["kind"] == "stall"
    assert "no counter moved with 16 requests running, and /health answered 200" in told.verdict["headline"]


@pytest.mark.parametrize("name", sorted(STORIES))
def test_the_fixtures_name_no_machine(name: str) -> None:
    text = log(name)
    assert b"/root" not in text
    assert b"/home" not in text
    assert b"@" not in text.replace(b"[@", b"[")
