"""What answers look like, where they part, how far apart their probabilities are."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab.quality import degenerate, logprobs
from crashlab.quality.answered import Answered, Counts, count, share
from crashlab.quality.degenerate import garbage_kinds, kinds_of
from crashlab.quality.divergence import diverge, first_difference
from crashlab.quality.generate import build_suite
from crashlab.quality.writing import script_of, scripts
from tests.unit.quality.simulated import answers

ENGLISH = "Continue this ordinary English sentence about the weather in spring"


@pytest.mark.parametrize(
    ("text", "tokens", "expected"),
    [
        ("!" * 48, 48, ("token-0",)),
        ("! ! ! ! ! ! ! !", 8, ("token-0",)),
        ("", 48, ("invisible-tokens",)),
        ("", 4, ("empty",)),
        ("\n" * 48, 48, ("empty",)),
        ("", 1, ()),
        ("no no " * 40, 80, ("one-token", "few-words")),
        ("\ufffd\ufffd" * 20, 40, ("mojibake",)),
        (
            "Das hei\u00c3\u00a9t \u00c3\u00bcbrigens \u00c3\u00a4hnlich \u00c3\u00b6ffnen \u00c3\u00a9",
            20,
            ("mojibake",),
        ),
        ("Привет это обычный русский текст", 12, ("other-script",)),
        ("这是一个普通的中文句子用来测试文字", 12, ("other-script",)),
        ("abcdef жзиклм αβγδεζ אבגדהו ابتثجح", 30, ("other-script", "mixed-scripts")),
        (" 42", 1, ()),
        ("It rains in spring, and the fields turn green again.", 12, ()),
    ],
)
def test_kinds_of_degenerate_answers(text: str, tokens: int, expected: tuple[str, ...]) -> None:
    found = kinds_of(text, tokens, question=ENGLISH, finish="stop" if tokens < 2 else "length")
    assert set(expected) <= set(found)
    if not expected:
        assert found == ()


def test_another_writing_system_is_odd_only_if_the_question_was_not_in_it() -> None:
    russian = "Продолжи это предложение о погоде весной"
    assert kinds_of("Весной часто идёт дождь и цветёт сирень", 12, question=russian) == ()
    assert kinds_of("Весной часто идёт дождь", 12, question="12 + 4") == ()


def test_token_0_is_what_the_server_says_it_is() -> None:
    assert degenerate.TOKEN0 in kinds_of("<pad><pad><pad><pad><pad><pad>", 6, token0="<pad>")
    assert degenerate.TOKEN0 not in kinds_of("!!!!!!!!", 8, token0="<pad>")


def test_every_kind_has_a_meaning_and_a_word_of_the_catalogue() -> None:
    for kind in degenerate.KINDS:
        assert degenerate.MEANING[kind]
        assert garbage_kinds((kind,)) != ()
    assert garbage_kinds(("loop", "one-token")) == ("repetition",)


@given(st.text(max_size=300), st.integers(0, 400), st.text(max_size=60))
def test_any_answer_can_be_looked_at(text: str, tokens: int, question: str) -> None:
    found = kinds_of(text, tokens, question=question)
    assert list(found) == [kind for kind in degenerate.KINDS if kind in found]


def test_letters_have_a_script_and_signs_have_none() -> None:
    assert [script_of(char) for char in "aЖγ中あ한ก1!"] == [
        "Latin", "Cyrillic", "Greek", "Han", "Han", "Hangul", "Thai", None, None,
    ]  # fmt: skip
    assert script_of("\u16a0") == "other"
    assert scripts("ab 12 Ж") == {"Latin": 2, "Cyrillic": 1}


@pytest.mark.parametrize(
    ("one", "other", "at"), [("same", "same", None), ("abc", "abd", 2), ("ab", "abc", 2), ("", "x", 0)]
)
def test_the_first_difference(one: str, other: str, at: int | None) -> None:
    assert first_difference(one, other) == at
    assert first_difference(other, one) == at


def test_divergence_leaves_errors_out_and_shows_the_earliest_splits() -> None:
    first = [
        Answered(f"t{i}", "l", "correct", text) for i, text in enumerate(("one two", "abc", "same", "x"))
    ]
    second = [
        Answered("t0", "l", "wrong", "one tWo"),
        Answered("t1", "l", "correct", "Abc"),
        Answered("t2", "l", "correct", "same"),
        Answered("t3", "l", "error"),
    ]
    found = diverge(first, second)
    assert (found.prompts, found.identical, found.median) == (3, 1, 2.5)
    assert [(split.task, split.at, split.word) for split in found.splits] == [("t1", 0, 0), ("t0", 5, 2)]
    assert diverge(first, first).median is None


def completion(numbers: list[object], offsets: object = None) -> bytes:
    told = {"token_logprobs": numbers, "text_offset": offsets}
    return json.dumps({"choices": [{"logprobs": told}]}).encode()


def test_of_a_question_only_the_answer_s_tokens_count() -> None:
    raw = completion([None, -1.0, -2.0, -3.0, -9.0], [0, 4, 8, 10, 12])
    assert logprobs.read(raw, 8) == (-2.0, -3.0)
    assert logprobs.read(raw, 9) == (-3.0,)
    assert logprobs.read(raw, 13) is None
    assert logprobs.read(completion([None, -1.0, -9.0]), 3) is None
    assert logprobs.read(completion([None, -1.0, -9.0], [0, 1]), 1) is None
    assert logprobs.read(completion([None, -1.0, -9.0], [0, "x", None]), 1) is None


def test_log_probabilities_of_a_prompt_without_its_first_and_the_generated_token() -> None:
    assert logprobs.read(completion([None, -1.0, -2.0, -9.0])) == (-1.0, -2.0)
    assert logprobs.read(completion([None])) is None


@given(st.binary(max_size=80))
def test_any_bytes_are_no_log_probabilities_or_some(raw: bytes) -> None:
    logprobs.read(raw)


@pytest.mark.parametrize(
    "raw", [b"[]", b"{}", b'{"choices": [{"logprobs": null}]}', b'{"choices": 3}', b"nul"]
)
def test_other_answers_tell_no_log_probabilities(raw: bytes) -> None:
    assert logprobs.read(raw) is None


def test_the_distance_is_over_texts_that_both_arms_told() -> None:
    found = logprobs.distance(((-1.0, -2.0), None, (-3.0,)), ((-1.5, -2.0), (-1.0,), (-3.0, -4.0)))
    assert found == logprobs.Distance(2, 0.25, 0.5)
    assert logprobs.distance(None, ((-1.0,),)) is None
    assert logprobs.distance(((-1.0,),), ((-1.0, -2.0),)) is None


def test_nan_in_one_arm_does_not_hide_behind_the_mean() -> None:
    assert logprobs.distance(((-1.0, -2.0),), ((math.nan, -2.5),)) == logprobs.Distance(2, 0.5, 0.5, 1)
    assert logprobs.distance(((math.nan,),), ((-1.0,),)) == logprobs.Distance(1, None, None, 1)
    nothing = logprobs.read(completion([None, "NaN", -2.0, -1.0]))
    assert nothing is not None
    assert math.isnan(nothing[0])


def test_the_four_counts_and_their_share() -> None:
    found = count(answers("+++-??!!"))
    assert found == Counts(8, 3, 1, 2, 2, None)
    assert found.answered == 6
    assert found.share == 0.5
    assert Counts().share is None
    assert count([Answered("p", "prose", None, "text")]).asked == 0
    strict = [Answered("a", "l", "correct", strict=True), Answered("b", "l", "correct", strict=False)]
    assert count(strict).strict == 1
    assert share(3, 6).low < 0.5 < share(3, 6).high


def test_fixed_texts_end_in_right_answers() -> None:
    suite = build_suite(1, 50)
    texts = logprobs.texts_of(suite)
    assert len(texts) == 12 + 32
    task = suite.tasks[0]
    assert texts[12] == logprobs.Text(f"{task.prompt} {task.answer}", len(task.prompt))
    assert {text.since for text in texts[:12]} == {0}
    assert texts == logprobs.texts_of(suite)


def test_the_fall_counts_texts_with_right_answers_only() -> None:
    prose = ((-9.0,),) * 12
    first = (*prose, (-1.0, -1.0), (-1.0,), (-2.0,), None, (math.nan,))
    second = (*((-1.0,),) * 12, (-2.0, -1.0), (-1.0,), (-1.5,), (-1.0,), (-1.0,))
    assert logprobs.fall(first, second) == logprobs.Fall(3, 0.0, 1, 1)
    broken = logprobs.fall((*prose, (-1.0,)), (*prose, (math.nan,)))
    assert broken == logprobs.Fall(1, 100.0, 1, 0)
    assert logprobs.fall(None, second) is None
    assert logprobs.fall(prose, prose) is None
