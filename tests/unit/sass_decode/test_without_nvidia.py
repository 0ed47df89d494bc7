"""The main path needs no NVIDIA program: with none to be had, every recorded instruction is still read."""

from __future__ import annotations

import pytest

from crashlab.report import build
from crashlab.report.options import AnalyzeOptions
from crashlab.sass import disassembler
from tests.support import corpus

WITH_SASS = [
    n for n, e in corpus.manifest().items() if e["expect"].get("sass") and len(e["expect"]["pcs"]) == 1
]


@pytest.mark.parametrize("name", WITH_SASS)
def test_the_faulting_instruction_is_read_by_our_own_tables(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disassembler, "find_nvdisasm", lambda *_: None)
    report = build.analyze([corpus.path(name)], AnalyzeOptions(debugger="never"))
    assert report.verdict.instruction is not None
    assert report.verdict.instruction.text == corpus.manifest()[name]["expect"]["sass"]
    assert report.verdict.instruction.decoded_by == "native"
