from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab.errors import CrashlabError, UnreadableInput, UsageError
from crashlab.quality.generate import LEVELS, build_suite
from crashlab.quality.gsm8k import load_gsm8k
from crashlab.quality.jsonlines import read_objects
from crashlab.quality.prose import build_prose
from crashlab.quality.task import EXACT, NUMBER, REGEX
from crashlab.quality.usertasks import load_tasks


def test_the_same_seed_gives_the_same_questions_and_another_gives_others() -> None:
    assert build_suite(5, 100) == build_suite(5, 100)
    assert build_suite(5, 100).sha256 == build_suite(5, 100).sha256
    assert build_suite(5, 100).sha256 != build_suite(6, 100).sha256


def test_the_questions_of_seed_0_never_change() -> None:
    """A report from last year must still mean the same questions."""
    digest = "d5bd6099752031e54fb3d81fc001c503b0a8baa9a7092e53f9919caeaed61903"
    assert build_suite(0, 200).sha256 == digest


def test_a_longer_suite_begins_with_the_shorter_one() -> None:
    assert build_suite(3, 300).tasks[:50] == build_suite(3, 50).tasks


def test_questions_differ_from_each_other_and_are_dealt_round_the_levels() -> None:
    suite = build_suite(1, 210)
    assert len({task.question for task in suite.tasks}) == 210
    assert {task.level for task in suite.tasks} == set(LEVELS)
    for level in LEVELS:
        assert sum(task.level == level for task in suite.tasks) == 30


@pytest.mark.parametrize("level", ["digits", "sums", "tables", "chains", "large"])
def test_sums_have_the_answer_that_python_gives(level: str) -> None:
    for task in build_suite(2, 60, (level,)).tasks:
        found = re.fullmatch(r"What is ([\d+*\- ]+)\?", task.question)
        assert found is not None
        assert eval(found[1]) == int(task.answer) >= 0


def test_stories_have_the_answer_that_their_numbers_give() -> None:
    for task in build_suite(2, 60, ("stories",)).tasks:
        a, b = (int(number) for number in re.findall(r"\d+", task.question))
        expected = a + b if "more" in task.question else a - b if "loses" in task.question else a * b
        assert int(task.answer) == expected >= 0
    for task in build_suite(2, 60, ("long-stories",)).tasks:
        a, b, c = (int(number) for number in re.findall(r"\d+", task.question))
        expected = a * b - c if "gives" in task.question else a + b * c
        assert int(task.answer) == expected > 0


def test_a_level_that_runs_out_is_passed_over() -> None:
    suite = build_suite(0, 5000, ("digits", "tables"))
    assert 200 < len(suite.tasks) < 5000


def test_an_unknown_level_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no level 'calculus'"):
        build_suite(0, 5, ("calculus",))


def test_examples_stand_before_each_question_and_none_with_no_shots() -> None:
    task = build_suite(0, 1, shots=4).tasks[0]
    assert task.prompt.count("Question:") == 5
    assert task.prompt.endswith("\nAnswer:")
    assert build_suite(0, 1, shots=0).tasks[0].prompt == f"Question: {task.question}\nAnswer:"


def gsm8k_file(folder: Path, count: int) -> Path:
    path = folder / "test.jsonl"
    rows = [
        {"question": f"What is {i} plus one?", "answer": f"{i}+1=<<{i}+1={i + 1}>>{i + 1}\n#### {i + 1:,}"}
        for i in range(count)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_gsm8k_questions_are_drawn_by_seed_and_never_serve_as_their_own_examples(tmp_path: Path) -> None:
    path = str(gsm8k_file(tmp_path, 1100))
    suite = load_gsm8k(path, 4, 50)
    assert suite == load_tasks(path, 4, 50)
    assert suite.sha256 != load_gsm8k(path, 5, 50).sha256
    assert len(suite.tasks) == 50
    for task in suite.tasks:
        assert task.prompt.count("Question:") == 6
        assert task.prompt.count(f"Question: {task.question}\n") == 1
    assert len(load_gsm8k(path, 4, None).tasks) == 1095
    assert dict(suite.seeds) == {"questions and examples": "4/gsm8k"}


def test_a_gsm8k_file_with_too_few_questions_says_how_a_line_looks(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInput, match="holds 4 questions") as caught:
        load_gsm8k(str(gsm8k_file(tmp_path, 4)), 0, None)
    assert "####" in (caught.value.hint or "")


def test_own_tasks_from_jsonl_and_toml(tmp_path: Path) -> None:
    lines = tmp_path / "own.jsonl"
    rows: list[dict[str, Any]] = [
        {"prompt": "Capital of Italy?", "exact": "Rome", "level": "geography", "id": "rome"},
        {"prompt": "Two and two?", "number": 4},
        {"prompt": "Name a colour.", "regex": "red|green|blue"},
        {"prompt": "Say anything."},
    ]
    lines.write_text("\n".join(json.dumps(row) for row in rows))
    suite = load_tasks(str(lines), 0, None)
    assert [task.scoring for task in suite.tasks] == [EXACT, NUMBER, REGEX, "none"]
    assert suite.tasks[0].id == "rome"
    assert suite.tasks[0].level == "geography"
    assert suite.tasks[1].answer == "4"
    toml = tmp_path / "own.toml"
    toml.write_text('stop = "\\n"\nmax_tokens = 9\n[[task]]\nprompt = "2+2="\nnumber = 4\n')
    suite = load_tasks(str(toml), 0, None)
    assert (suite.stop, suite.max_tokens, suite.tasks[0].answer) == (("\n",), 9, "4")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('{"prompt": "x", "number": 1, "exact": "1"}', "more than one of"),
        ('{"prompt": "x", "number": "seven"}', "is no number"),
        ('{"prompt": "x", "exact": "  "}', "is empty"),
        ('{"prompt": "x", "regex": "(a+)+b"}', "cannot be used"),
        ('{"prompt": "x", "exact": [1]}', "is no text"),
        ('{"number": 4}', "has no prompt"),
        ('{"prompt": "x", "id": 1}\n{"prompt": "y", "id": "1"}', "same id"),
        ("[1]", "no JSON object"),
        ("", "holds no tasks"),
    ],
)
def test_broken_tasks_are_named(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text(content)
    with pytest.raises(UnreadableInput, match=says):
        load_tasks(str(path), 0, None)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("task = 3", "no .*task.* tables"),
        ("[[task]\n", "no TOML"),
        ('stop = [1]\n[[task]]\nprompt = "x"', "stop must be"),
        ('max_tokens = 0\n[[task]]\nprompt = "x"', "max_tokens must be"),
    ],
)
def test_a_broken_toml_is_named(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "own.toml"
    path.write_text(content)
    with pytest.raises(UnreadableInput, match=says):
        load_tasks(str(path), 0, None)


@pytest.mark.parametrize("suffix", ["jsonl", "toml"])
@given(data=st.binary(max_size=300))
def test_only_our_own_errors_leave_the_task_readers(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, data: bytes
) -> None:
    path = tmp_path_factory.mktemp("tasks") / f"x.{suffix}"
    path.write_bytes(data)
    with suppress(CrashlabError):
        load_tasks(str(path), 0, None)


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


@given(
    row=st.dictionaries(
        st.sampled_from(["prompt", "question", "answer", "number", "exact", "regex", "id", "level"]), _values
    )
)
def test_only_our_own_errors_leave_whatever_a_row_holds(
    tmp_path_factory: pytest.TempPathFactory, row: dict[str, Any]
) -> None:
    path = tmp_path_factory.mktemp("tasks") / "x.jsonl"
    path.write_text(json.dumps(row))
    with suppress(CrashlabError):
        load_tasks(str(path), 0, None)


def test_a_missing_file_is_our_error(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInput):
        read_objects(str(tmp_path / "none.jsonl"))


def test_prose_is_fixed_and_not_scored() -> None:
    assert build_prose() == build_prose()
    assert {task.scoring for task in build_prose().tasks} == {"none"}
