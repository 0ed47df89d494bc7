"""A sweep of the real vLLM 0.25.1 on an H200 with a planted fault that no lever touches.

Recorded with scripts/gpu/accept_sweep.py (driver 580.159.04): CUDA graphs on and off, light and full dumps, two
batch shapes; every arm faults, and none may be called the cause.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from crashlab.report import sweep as form
from crashlab.sweep import journal
from crashlab.sweep.facts import SweepResult
from crashlab.sweep.plan import read_plan

DATA = Path(__file__).resolve().parents[2] / "data" / "sweep" / "h200"
KEY = "v1|gpu-fault|WARP_ILLEGAL_ADDRESS|planted_epilogue_store|store|global"
LEVERS = ("cudagraph-mode", "dump-flags", "max-num-seqs")
FULL = "skip_nonrelocated_elf_images"


@pytest.fixture(scope="module")
def result() -> SweepResult:
    return form.from_json((DATA / "report.json").read_bytes())


def test_every_arm_faulted_with_the_key_of_the_planted_kernel(result: SweepResult) -> None:
    assert [(run.outcome, run.key) for run in result.runs] == [("fault", KEY)] * 5
    assert {run.arm for run in result.runs} == {arm.name for arm in result.arms}


def test_the_effective_configuration_of_each_arm_is_what_was_asked_for(result: SweepResult) -> None:
    shown = {run.arm: {one.lever: one.value for one in run.effective} for run in result.runs}
    graphs, flags, seqs = LEVERS
    assert shown["baseline"][graphs] == "FULL_DECODE_ONLY"
    assert shown["baseline"][seqs] == "32"
    assert shown["cudagraph-mode=NONE"][graphs] == "NONE"
    assert shown[f"dump-flags={FULL}"][flags] == FULL
    assert shown["max-num-seqs=8"][seqs] == "8"
    changed = {run.arm: [one for one in run.effective if one.took is False] for run in result.runs}
    assert not any(changed.values()), "nothing was asked for in vain"


def test_no_lever_is_called_the_cause(result: SweepResult) -> None:
    judged = form.render(result._replace(findings=None), "text")
    assert "no lever is told apart from chance yet" in " ".join(judged.split())


def test_the_journal_and_the_plan_tell_the_same_runs(result: SweepResult) -> None:
    record = journal.read(str(DATA))
    assert [run.outcome for run in record.runs] == [run.outcome for run in result.runs]
    names = {
        arm.name for arm in read_plan((DATA / "plan.toml").read_text(), "plan.toml", command=["server"]).arms
    }
    assert names == {arm.name for arm in result.arms}


@pytest.mark.parametrize("name", form.FORMATS)
def test_it_is_rendered_in_every_form(result: SweepResult, name: str) -> None:
    assert "cudagraph-mode" in form.render(result, name)
