"""Logs beside several dumps of one crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from crashlab.report import build, text, textevidence
from crashlab.report.options import AnalyzeOptions
from tests.support import corpus


def test_the_logs_are_read_once_for_all_dumps_of_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "server.log"
    log.write_text(
        "INFO 11-29 17:11:17 [core.py:114] Initializing a V1 LLM engine (v0.25.1) with config: x\n"
    )
    reads: list[tuple[str, ...]] = []
    read_all = textevidence.read_all

    def counted(logs: tuple[str, ...], dmesg: tuple[str, ...]) -> textevidence.TextEvidence:
        reads.append(tuple(logs))
        return read_all(logs, dmesg)

    monkeypatch.setattr(textevidence, "read_all", counted)
    options = AnalyzeOptions(debugger="never", fast=True, logs=(str(log),))
    report = build.analyze([corpus.path("assert"), corpus.path("trap")], options)
    assert len(report.cases) == 2
    assert reads == [(str(log),)]
    assert report.environment is not None
    assert report.environment["vllm"].value == "0.25.1"


def test_a_log_beside_an_unreadable_dump_does_not_hide_why_it_is_unreadable(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("RuntimeError: CUDA error: an illegal memory access was encountered\n")
    options = AnalyzeOptions(debugger="never", fast=True, logs=(str(log),))
    report = build.analyze([corpus.path("cut_short")], options)
    assert [item.path for item in report.inputs] == ["cut_short.core", "server.log"]
    assert report.verdict.kind == "gpu-fault"
    assert report.verdict.address is not None
    assert report.verdict.address.why == "the dump cannot be read"
    assert report.verdict.confidence is not None
    assert report.verdict.confidence.reasons[0].startswith("The dump cannot be read: writing was cut short")
    assert "writing was cut short" in text.render(report)


def test_a_log_that_says_nothing_beside_an_unreadable_dump_is_named_all_the_same(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("all is well\n")
    options = AnalyzeOptions(debugger="never", fast=True, logs=(str(log),))
    report = build.analyze([corpus.path("cut_short")], options)
    assert report.verdict.kind == "unreadable"
    assert "No GPU error was found in server.log." in report.provenance
    assert [item.path for item in report.inputs] == ["cut_short.core", "server.log"]
