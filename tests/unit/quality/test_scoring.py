from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab.quality import extract, generate, gsm8k
from crashlab.quality.scoring import CORRECT, INVALID, WRONG, Score, cut, score
from crashlab.quality.task import EXACT, NONE, REGEX, Task


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("18", "18"),
        (" $1,234.50 ", "1234.50"),
        ("18.", "18"),
        ("-7", "-7"),
        ("seven", None),
        ("", None),
        ("1e999999", None),
        ("nan", None),
        ("9" * 80, None),
    ],
)
def test_numbers_as_people_write_them(text: str, number: str | None) -> None:
    found = extract.number_of(text)
    if text == "1e999999":
        assert found is None or found.is_finite()
        return
    assert found == (None if number is None else Decimal(number))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("She has 3 + 4 = 7 apples.", 7),
        ("#### 1,024", 1024),
        ("The answer is $5.", 5),
        ("no number here", None),
        ("-12", -12),
    ],
)
def test_the_flexible_reading_takes_the_last_number(text: str, number: int | None) -> None:
    assert extract.flexible(text) == number


def test_strict_and_flexible_differ_where_the_form_is_missed() -> None:
    task = Task("t", "l", "p", "42")
    assert score(task, "6*7=42\n#### 42", strict=gsm8k.STRICT) == Score(CORRECT, True)
    assert score(task, "The answer is 42", strict=gsm8k.STRICT) == Score(CORRECT, False)
    assert score(task, "#### 42 and then 43", strict=gsm8k.STRICT) == Score(WRONG, True)
    assert score(task, " 42", strict=generate.STRICT) == Score(CORRECT, True)
    assert score(task, " Forty-two, i.e. 42", strict=generate.STRICT) == Score(CORRECT, False)


def test_no_number_is_invalid_and_not_wrong() -> None:
    task = Task("t", "l", "p", "42")
    for text in ("", "!!!!!!!!", "I do not know"):
        assert score(task, text).outcome == INVALID
    assert score(task, "41").outcome == WRONG


def test_what_comes_after_a_stop_text_does_not_count() -> None:
    task = Task("t", "l", "p", "7")
    text = " 7\n\nQuestion: What is 2 + 3?\nAnswer: 5"
    assert score(task, text, stop=("\n\n", "Question:")).outcome == CORRECT
    assert cut("abc", ()) == "abc"
    assert cut("a|b;c", (";", "|")) == "a"


def test_exact_ignores_white_space_only() -> None:
    task = Task("t", "l", "p", "New  York", EXACT)
    assert score(task, " New York\n").outcome == CORRECT
    assert score(task, "new york").outcome == WRONG
    assert score(task, "  ").outcome == INVALID


def test_a_pattern_must_occur() -> None:
    task = Task("t", "l", "p", "(red|blue) car", REGEX)
    assert score(task, "It is a blue car.").outcome == CORRECT
    assert score(task, "It is a green car.").outcome == WRONG
    assert score(task, "").outcome == INVALID


def test_a_task_without_an_answer_is_not_scored() -> None:
    assert score(Task("t", "l", "p", "", NONE), "anything").outcome is None


@given(st.text(max_size=200), st.sampled_from([generate.STRICT, gsm8k.STRICT, None]))
def test_scoring_takes_any_text(text: str, strict: str | None) -> None:
    assert score(Task("t", "l", "p", "1"), text, strict=strict).outcome in (CORRECT, WRONG, INVALID)


def test_long_answers_are_read_in_linear_time() -> None:
    for text in ("1," * 500_000, "-" * 1_000_000, "####" * 250_000, " " * 1_000_000, "1" * 1_000_000):
        score(Task("t", "l", "p", "1"), text, strict=gsm8k.STRICT)
        score(Task("t", "l", "p", "1"), text, strict=generate.STRICT)
