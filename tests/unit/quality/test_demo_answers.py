from __future__ import annotations

import json
from pathlib import Path

import pytest

from crashlab.demo.answers import Answers, Flaws, load_known, question_of
from crashlab.demo.options import parse
from crashlab.quality.generate import build_suite

SUITE = build_suite(1, 200)
KNOWN = {task.question: task.answer for task in SUITE.tasks}


def share_right(flaws: Flaws, seed: int = 1) -> float:
    server = Answers(KNOWN, flaws, seed)
    plans = [(server.plan(task.prompt, 50, 1).pieces, task.answer) for task in SUITE.tasks]
    return sum("".join(pieces or ()).strip() == answer for pieces, answer in plans) / len(plans)


def test_all_is_right_without_flaws_and_accuracy_is_about_what_was_asked() -> None:
    assert share_right(Flaws()) == 1.0
    assert share_right(Flaws(accuracy=0.7)) == pytest.approx(0.7, abs=0.1)
    assert share_right(Flaws(accuracy=0.7), 1) == share_right(Flaws(accuracy=0.7), 2)


def test_noise_flips_other_questions_each_time() -> None:
    def wrong(seed: int) -> set[str]:
        server = Answers(KNOWN, Flaws(noise=0.1), seed)
        plans = {
            t.id: "".join(server.plan(t.prompt, 50, 1).pieces or ()).strip() == t.answer for t in SUITE.tasks
        }
        return {name for name, right in plans.items() if not right}

    assert 5 <= len(wrong(1)) <= 40
    assert wrong(1) == wrong(1) != wrong(2)


def test_a_share_of_requests_is_dropped() -> None:
    server = Answers(KNOWN, Flaws(drop=0.2), 1)
    dropped = sum(server.plan(task.prompt, 50, 1).pieces is None for task in SUITE.tasks)
    assert 20 <= dropped <= 60


@pytest.mark.parametrize(
    ("kind", "text"),
    [("token0", "!" * 48), ("empty", ""), ("loop", " and so on" * 16), ("mojibake", "\ufffdÃ©" * 24)],
)
def test_garbage_looks_as_named(kind: str, text: str) -> None:
    pieces = Answers(KNOWN, Flaws(degrade=kind), 1).plan(SUITE.tasks[0].prompt, 50, 1).pieces
    assert "".join(pieces or ()) == text
    assert len(pieces or ()) == 48


def test_a_wrong_answer_is_a_number_and_another_one() -> None:
    server = Answers(KNOWN, Flaws(degrade="wrong"), 1)
    for task in SUITE.tasks:
        said = "".join(server.plan(task.prompt, 50, 1).pieces or ()).strip()
        assert said.isdigit()
        assert said != task.answer


def test_garbage_can_begin_at_a_length_and_at_a_load() -> None:
    server = Answers(KNOWN, Flaws(degrade="token0", from_tokens=100, from_batch=8), 1)
    prompt = SUITE.tasks[0].prompt

    def bad(tokens: int, running: int) -> bool:
        return (server.plan(prompt, tokens, running).pieces or ("",))[0] == "!"

    assert [bad(99, 9), bad(100, 7), bad(100, 8), bad(500, 64)] == [False, False, True, True]


def test_an_unknown_prompt_is_continued_with_the_same_words_each_time() -> None:
    first, second = (Answers({}, Flaws(), seed).plan("Once upon a time", 4, 1).pieces for seed in (1, 2))
    assert first == second
    flipped = Answers({}, Flaws(noise=1.0), 1).plan("Once upon a time", 4, 1).pieces
    assert first is not None
    assert flipped is not None
    assert first[:20] == flipped[:20]
    assert first[20:] != flipped[20:]


def test_the_last_question_of_a_prompt_counts() -> None:
    assert question_of("Question: a?\nAnswer: 1\n\nQuestion: b?\nAnswer:") == "b?"


def test_known_answers_and_options_are_read(tmp_path: Path) -> None:
    path = tmp_path / "known.jsonl"
    path.write_text(json.dumps({"question": " What? ", "answer": 7}) + "\n[]\n")
    assert load_known(str(path)) == {"What?": "7"}
    options = parse(
        ["--answers", str(path), "--drop", "0.2", "--degrade", "loop", "--degrade-from-batch", "4"]
    )
    assert (options.answers, options.drop, options.degrade, options.degrade_from_batch) == (
        str(path),
        0.2,
        "loop",
        4,
    )
