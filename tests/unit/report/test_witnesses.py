"""Logs beside several dumps of one crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from crashlab.report import build, textevidence
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
