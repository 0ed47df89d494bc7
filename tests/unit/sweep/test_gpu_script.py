"""The acceptance of a sweep on a GPU, as far as it can be tried without one."""

from __future__ import annotations

import importlib.util
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from crashlab.sweep.plan import read_plan
from tests.support.demosweep import demo_command

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "gpu" / "accept_sweep.py"


@pytest.fixture(scope="module")
def script() -> Any:
    spec = importlib.util.spec_from_file_location("accept_sweep", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_its_plan_can_be_read_and_has_the_arms_that_it_checks(script: Any) -> None:
    names = {arm.name for arm in read_plan(script.PLAN, "plan.toml", command=["server"]).arms}
    assert names == {script.LIGHT, script.FULL, script.GRAPHS_OFF, script.FEW}


def test_a_right_and_a_wrong_result_are_told_apart(script: Any, tmp_path: Path) -> None:
    def run(arm: str, graphs: str, seqs: str | None, size: int) -> dict[str, Any]:
        cores = tmp_path / "sweep" / arm / "cores"
        cores.mkdir(parents=True, exist_ok=True)
        (cores / "x").write_bytes(bytes(size))
        shown = [{"lever": "cudagraph-mode", "value": graphs}, {"lever": "max-num-seqs", "value": seqs}]
        return {"arm": arm, "outcome": "fault", "key": "v1|k", "rundir": arm, "effective": shown}

    runs = [
        run(script.LIGHT, "FULL_DECODE_ONLY", None, 10),
        run(script.FULL, "FULL_DECODE_ONLY", None, 1000),
        run(script.GRAPHS_OFF, "NONE", None, 10),
        run(script.FEW, "FULL_DECODE_ONLY", script.SMALL, 10),
    ]
    assert not any(script.check({"runs": runs}, tmp_path, "k").values())
    assert script.check({"runs": runs}, tmp_path, "other")[script.LIGHT]
    runs[2]["effective"][0]["value"] = "FULL"
    runs[3]["outcome"] = "clean"
    wrong = script.check({"runs": runs[:4]}, tmp_path, "k")
    assert "expected NONE" in wrong[script.GRAPHS_OFF][0]
    assert "expected fault" in wrong[script.FEW][0]
    assert script.check({}, tmp_path, "")[script.FULL][0] == "no run"


def test_it_writes_its_table_whatever_the_server_does(script: Any, tmp_path: Path) -> None:
    command = shlex.join(demo_command(300))
    code = script.main(["--out", str(tmp_path / "out"), "--server-cmd", command, "--budget", "200"])
    rows = json.loads((tmp_path / "out" / "accept_sweep.json").read_text())["rows"]
    assert code == 1, "the demo server has no batch lever that its log shows, and one size of dump"
    by_name = {row["name"]: row for row in rows}
    assert by_name["cudagraph-mode=NON"]["wrong"], "graphs off cure the planted bug of the demo"
    assert not by_name["baseline"]["wrong"]
