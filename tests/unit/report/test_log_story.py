"""Where nothing but a log was given, its story is the report: shown without asking."""

from __future__ import annotations

from pathlib import Path

from crashlab.report.fromtext import analyze_logs
from crashlab.report.options import AnalyzeOptions
from crashlab.report.text import render

DATA = Path(__file__).resolve().parents[2] / "data" / "logs" / "vllm"


def shown(path: Path, *, verbose: bool = False) -> str:
    return " ".join(render(analyze_logs(AnalyzeOptions(logs=(str(path),))), verbose=verbose).split())


def test_the_story_of_a_fault_without_a_dump_is_told_without_v() -> None:
    said = shown(DATA / "nodump.log.xz")
    assert "vLLM 0.25.1 with model tiny was ready" in said
    assert "died at 11-29 17:12:45" in said
    assert "its exit code can be 0 and proves nothing" in said


def test_a_healthy_log_still_tells_what_it_told(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(
        "(APIServer pid=7) INFO 11-29 17:14:09 [loggers.py:259] Engine 000: Avg prompt throughput: 0.0 tokens/s, "
        "Avg generation throughput: 0.0 tokens/s, Running: 16 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.5%\n"
    )
    said = shown(log)
    assert "The logs hold no GPU fault" in said
    assert "16 requests running" in said
