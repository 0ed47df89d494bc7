from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab.errors import MissingTool, ToolFailed
from crashlab.quality import lmeval
from crashlab.quality.answered import count
from crashlab.soak.client import Server

JOB = lmeval.Job(("gsm8k",), Server("http://127.0.0.1:9", "tiny", "sk-key"), 7, 3)


def sample(number: int, filter: str, text: str, filtered: str, right: float) -> dict[str, Any]:
    """One line as lm-eval 0.4 writes it."""
    return {
        "doc_id": number, "doc": {"question": "?"}, "target": "18", "arguments": {}, "resps": [[text]],
        "filtered_resps": [filtered], "filter": filter, "metrics": ["exact_match"], "exact_match": right,
    }  # fmt: skip


ROWS = [
    sample(0, "strict-match", "so #### 18", "18", 1.0),
    sample(0, "flexible-extract", "so #### 18", "18", 1.0),
    sample(1, "strict-match", "it is 18", "[invalid]", 0.0),
    sample(1, "flexible-extract", "it is 18", "18", 1.0),
    sample(2, "strict-match", "!!!!!!!!!!!!!!!!", "[invalid]", 0.0),
    sample(2, "flexible-extract", "!!!!!!!!!!!!!!!!", "[invalid]", 0.0),
    sample(3, "strict-match", "#### 17", "17", 0.0),
    sample(3, "flexible-extract", "#### 17", "17", 0.0),
]
RESULTS = {
    "results": {
        "gsm8k": {
            "alias": "gsm8k",
            "exact_match,strict-match": 0.25,
            "exact_match_stderr,strict-match": 0.1,
            "exact_match,flexible-extract": 0.5,
        }
    }
}


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """A program of this name in front of the path."""
    program = folder / "bin" / "lm_eval"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nimport json, os, sys\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


WRITES = f"""
out = sys.argv[sys.argv.index("--output_path") + 1]
os.makedirs(os.path.join(out, "tiny"))
with open(os.path.join(out, "tiny", "samples_gsm8k_2026-11-30T00-00-00.jsonl"), "w") as file:
    for row in json.loads({json.dumps(json.dumps(ROWS))}):
        file.write(json.dumps(row) + "\\n")
with open(os.path.join(out, "tiny", "results_2026-11-30T00-00-00.json"), "w") as file:
    file.write({json.dumps(json.dumps(RESULTS))})
with open(os.path.join(out, "argv.json"), "w") as file:
    json.dump([sys.argv[1:], os.environ.get("OPENAI_API_KEY")], file)
"""


def test_it_is_driven_by_an_argument_list_and_its_files_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, WRITES)
    said: list[str] = []
    found = lmeval.ask(JOB, "A1", str(tmp_path), say=said.append)
    assert [one.task for one in found] == ["gsm8k-0", "gsm8k-1", "gsm8k-2", "gsm8k-3"]
    assert [one.outcome for one in found] == ["correct", "correct", "invalid", "wrong"]
    assert [one.strict for one in found] == [True, False, False, False]
    assert found[2].kinds == ("token-0",)
    assert count(found).strict == 1
    assert said == [
        "lm-eval reports gsm8k/exact_match,strict-match 0.2500",
        "lm-eval reports gsm8k/exact_match,flexible-extract 0.5000",
    ]
    argv, key = json.loads((tmp_path / "lm-eval-A1" / "argv.json").read_text())
    assert key == "sk-key"
    assert "sk-key" not in " ".join(argv)
    assert argv[:2] == ["--model", "local-completions"]
    assert "base_url=http://127.0.0.1:9/v1/completions" in argv[3]
    assert argv[argv.index("--limit") + 1] == "3"
    assert argv[argv.index("--seed") + 1] == "7"


def test_without_it_the_error_names_both_ways_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(MissingTool, match="not installed") as caught:
        lmeval.ask(JOB, "A1")
    assert "--lm-eval" in (caught.value.hint or "")


def test_its_failure_is_told_with_its_last_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "print('Traceback'); sys.exit('ValueError: no such task')")
    with pytest.raises(ToolFailed, match="exit code 1: ValueError: no such task"):
        lmeval.ask(JOB, "A1", str(tmp_path))


def test_no_samples_are_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "pass")
    with pytest.raises(ToolFailed, match="left no samples"):
        lmeval.ask(JOB, "A1", str(tmp_path))


def test_it_is_ended_when_the_user_wants_to_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "import time; time.sleep(60)")
    with pytest.raises(ToolFailed, match="exit code -15"):
        lmeval.ask(JOB, "A1", str(tmp_path), stopping=lambda: True)


def test_a_task_with_one_filter_is_read_by_its_own_metric() -> None:
    rows = [{"task": "copa", "doc_id": 4, "filter": "none", "resps": [[["-1.0", "False"]]], "acc": 1.0}]
    assert [(one.task, one.outcome) for one in lmeval.read_samples(rows)] == [("copa-4", "correct")]


_values = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.dictionaries(
        st.sampled_from(["doc_id", "filter", "resps", "filtered_resps", "exact_match", "acc", "task"]),
        _values,
    )
)
def test_any_row_is_read_or_passed_over(row: dict[str, Any]) -> None:
    lmeval.read_samples([row])


@given(_values)
def test_any_document_has_totals_or_none(document: Any) -> None:
    lmeval.totals(document)


def test_a_broken_results_file_has_no_totals(tmp_path: Path) -> None:
    (tmp_path / "results_x.json").write_text("{")
    assert lmeval.read_results(str(tmp_path)) == {}
