"""``crashlab quality`` against the real vLLM on the CPU with planted corruption (``scripts/plant-corruption``)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import run_cli
from tests.support.vllmcpu import ENVIRONMENT, ROOT, TRAINED, VLLM, WHY_NOT, free_port, serve

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not VLLM or not TRAINED, reason=WHY_NOT),
]


@pytest.mark.parametrize("kind", ["layer", "kv-scale", "rows"])
def test_planted_corruption_is_called_with_the_right_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    broken = tmp_path / "broken"
    python = Path(VLLM).parent / "python"
    planted = [str(python), str(ROOT / "scripts" / "plant-corruption"), TRAINED, str(broken), kind]
    subprocess.run(planted, check=True, stdout=sys.stderr)
    out = tmp_path / "run"
    done = run_cli(
        "quality", "--out", str(out),
        "--a", "--", *serve(TRAINED, free_port()), "--b", "--", *serve(str(broken), free_port()),
    )  # fmt: skip
    report = json.loads((out / "quality.json").read_text())
    assert done.code == 13, done.err + done.out
    assert report["verdict"]["kind"] in ("garbage", "degraded")
    assert report["verdict"]["worse_arm"] == "B"
    rows = [json.loads(line) for line in (out / "answers.jsonl").read_text().splitlines()]
    answered = [row for row in rows if row["pass"] == "B1"]
    counts = report["arms"][1]["passes"][0]["counts"]
    assert len(answered) == counts["asked"] == 200
    for outcome in ("correct", "wrong", "invalid", "error"):
        assert sum(row["outcome"] == outcome for row in answered) == counts[outcome]
    right = {
        task["id"]: task["answer"] for task in map(json.loads, (out / "tasks.jsonl").read_text().splitlines())
    }
    for row in answered:
        last = row.get("text", "").split()[-1:] or [""]
        assert (row["outcome"] == "correct") == (last[0].rstrip(".") == right[row["task"]]), row
    assert report["controls"]
