"""Hints say what to do; whoever installed the package with pip has none of the source tree's files."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.support.command import run_cli

ROOT = Path(__file__).resolve().parents[3] / "crashlab"


def _said(path: Path) -> list[str]:
    """Texts that may reach a person: every string of a module but its docstrings."""
    tree = ast.parse(path.read_text())
    documents = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents
    ]


def test_no_message_sends_anybody_to_a_page_that_was_not_installed() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {text[:60]}"
        for path in sorted(ROOT.rglob("*.py"))
        if path != ROOT / "signatures" / "document.py"  # writes such a page
        for text in _said(path)
        if "docs/" in text or ("scripts/" in text and "source tree" not in text)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("plan", "says"),
    [("[levers\n", 'cudagraph-mode = ["NONE"]'), ("seed = 'x'\n", "crashlab sweep PLAN --dry-run")],
)
def test_a_plan_that_cannot_be_read_is_told_how_one_looks(tmp_path: Path, plan: str, says: str) -> None:
    (tmp_path / "plan.toml").write_text(plan)
    done = run_cli("sweep", str(tmp_path / "plan.toml"), "--", "true")
    assert (done.code, says in done.err) == (2, True), done.err


def test_a_pattern_that_is_refused_is_told_what_one_may_hold(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"prompt": "Which?", "regex": "(a+)+"}\n')
    done = run_cli("quality", "--a-url", "http://127.0.0.1:9", "--tasks", str(tmp_path / "q.jsonl"))
    assert (done.code, "no repeated group, no backreference" in done.err) == (3, True), done.err
