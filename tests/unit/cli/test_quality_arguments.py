from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab.cli.qualityargs import Target, pairs, split_groups, targets
from crashlab.errors import UsageError
from tests.support.command import run_cli

NOTHING: dict[str, Any] = {"a": None, "b": None, "a_url": None, "b_url": None}


def test_two_groups_are_taken_out_before_click_looks() -> None:
    a, b = ["vllm", "serve", "m", "--port", "1"], ["vllm", "serve", "m", "--linear-backend", "marlin"]
    words = ["--seed", "3", "--a", "--", *a, "--b", "--", *b]
    found = split_groups(words)
    assert found.rest == ["--seed", "3"]
    assert found.commands == {"A": tuple(a), "B": tuple(b)}


def test_the_groups_may_come_in_either_order_and_one_is_enough() -> None:
    assert split_groups(["--b", "--", "x", "--a", "--", "y"]).commands == {"A": ("y",), "B": ("x",)}
    assert split_groups(["--a", "--", "y"]).commands == {"A": ("y",)}
    assert split_groups(["-q", "--", "vllm", "serve"]) == (["-q"], {"A": ("vllm", "serve")})
    assert split_groups(["--a", "vllm serve"]) == (["--a", "vllm serve"], {})


def test_a_server_s_own_double_dash_and_options_stay_with_it() -> None:
    found = split_groups(["--a", "--", "env", "--", "vllm", "--a", "x"])
    assert found.commands == {"A": ("env", "--", "vllm", "--a", "x")}


@pytest.mark.parametrize("words", [["--a", "--"], ["--a", "--", "--b", "--", "x"], ["--"]])
def test_an_empty_group_is_refused(words: list[str]) -> None:
    with pytest.raises(UsageError, match="no command behind"):
        split_groups(words)


def test_a_doubled_group_is_refused() -> None:
    with pytest.raises(UsageError, match="--a is given twice"):
        split_groups(["--a", "--", "x", "--a", "--", "y"])


@given(st.lists(st.sampled_from(["--a", "--b", "--", "vllm", "-q", "--seed", "3"]), max_size=12))
def test_any_words_are_split_or_refused(words: list[str]) -> None:
    try:
        found = split_groups(words)
    except UsageError:
        return
    kept = len(found.rest) + sum(len(one) for one in found.commands.values())
    assert kept <= len(words)


def test_targets_in_every_spelling() -> None:
    assert targets({}, NOTHING) == {}
    found = targets({}, {**NOTHING, "a": "http://x:1/v1/", "b_url": "y:2"})
    assert found == {"A": Target("http://x:1"), "B": Target("http://y:2")}
    found = targets({"B": ("vllm", "--port", "9")}, {**NOTHING, "a": "vllm serve 'my model' --port 8"})
    assert found["A"] == Target("http://127.0.0.1:8", ("vllm", "serve", "my model", "--port", "8"))
    assert found["B"] == Target("http://127.0.0.1:9", ("vllm", "--port", "9"))
    assert targets({"A": ("srv",)}, {**NOTHING, "a_url": "http://z:3"})["A"] == Target("http://z:3", ("srv",))


@pytest.mark.parametrize(
    ("commands", "options", "says"),
    [
        ({}, {"b_url": "http://x:1"}, "nothing to be compared with"),
        ({"A": ("x",)}, {"a": "y"}, "--a is given twice"),
        ({}, {"a": "http://x:1", "a_url": "http://y:1"}, "both name a URL"),
        ({}, {"a_url": "http://x:1", "b_url": "http://x:1/v1"}, "Both arms are at"),
        ({"A": ("vllm", "serve", "m")}, {"b_url": "http://127.0.0.1:8000"}, "Both arms are at"),
        ({}, {"a": "vllm 'open"}, "cannot be read"),
    ],
)
def test_contradictions_are_usage_errors(
    commands: dict[str, tuple[str, ...]], options: dict[str, str], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        targets(commands, {**NOTHING, **options})


def test_two_started_servers_may_share_a_port_as_they_run_one_after_the_other() -> None:
    found = targets({"A": ("vllm", "serve", "m"), "B": ("vllm", "serve", "m", "-x")}, NOTHING)
    assert found["A"].url == found["B"].url


def test_name_value_pairs() -> None:
    assert pairs("--fact", ["arch=sm_120", "x=a=b"]) == {"arch": "sm_120", "x": "a=b"}
    with pytest.raises(UsageError, match="takes NAME=VALUE"):
        pairs("--fact", ["arch"])


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ((), 2, "Which server?"),
        (("--a-url", "http://x:1", "--expect", "2"), 2, "takes a share"),
        (("--a-url", "http://x:1", "--expect", "high"), 2, "takes a share"),
        (("--a-url", "http://x:1", "--extra", "["), 2, "no JSON object"),
        (("--a-url", "http://x:1", "--extra", "[]"), 2, "no JSON object"),
        (("--a-url", "http://x:1", "--tasks", "/nonexistent/x.jsonl"), 3, "cannot read"),
        (("--a-url", "http://x:1", "--fact", "arch"), 2, "NAME=VALUE"),
        (("--a-url", "http://x:1", "--tasks", "x.jsonl", "--level", "digits"), 2, "--level chooses"),
        (("--b-url", "http://x:1"), 2, "nothing to be compared with"),
    ],
)
def test_wrong_command_lines_say_what_is_wrong(arguments: tuple[str, ...], code: int, says: str) -> None:
    done = run_cli("quality", *arguments)
    assert (done.code, done.out) == (code, "")
    assert says.lower() in done.err.lower()


def test_the_questions_can_be_written_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    done = run_cli("quality", "--write-tasks", str(path), "--questions", "30", "--seed", "7")
    assert done.code == 0
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(rows) == 30
    assert all(row["prompt"].endswith("Answer:") and row["number"] == row["answer"] for row in rows)
    again = tmp_path / "again.jsonl"
    assert run_cli("quality", "--write-tasks", str(again), "--tasks", str(path)).code == 0
    assert [json.loads(line)["prompt"] for line in again.read_text().splitlines()] == [
        row["prompt"] for row in rows
    ]


def test_questions_are_never_written_over_others(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text("my own questions\n")
    done = run_cli("quality", "--write-tasks", str(path), "--questions", "30", "--seed", "7")
    assert done.code == 2
    assert "File exists" in done.err
    assert path.read_text() == "my own questions\n"
    path.unlink()
    for _ in range(2):  # the same again is no loss
        assert run_cli("quality", "--write-tasks", str(path), "--questions", "30", "--seed", "7").code == 0
    assert run_cli("quality", "--write-tasks", str(path), "--questions", "30", "--seed", "8").code == 2


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    done = run_cli("quality", "--write-tasks", str(tmp_path / "none" / "x.jsonl"))
    assert done.code == 2
