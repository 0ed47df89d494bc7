"""What garbage looks like, and when it counts: against the server's own beginning."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.soak.garbage import CONTROL, EMPTY, FEW_WORDS, LOOP, ONE_TOKEN, look_at, smallest_period
from crashlab.soak.garbagewatch import BASELINE, GarbageWatch
from crashlab.soak.words import VOCABULARY


def prose(seed: int, words: int = 40) -> str:
    return " ".join(random.Random(seed).choices(VOCABULARY, k=words))


def feed(watch: GarbageWatch, texts: list[str], *, temperature: float = 1.0, finish: str = "length") -> None:
    for text in texts:
        number = watch.seen
        watch.see(f"0/{number}", f"t{number}", text, max(32, len(text) // 5), temperature, finish)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("!" * 64, ONE_TOKEN),
        (" the" * 40, ONE_TOKEN),
        ("The answer is simple and: " + "!" * 400, ONE_TOKEN),
        ("I like it.\nI like it a lot, says he.\n" * 12, LOOP),
        ("It begins well enough. " + "and then they went on to the next one, " * 30, LOOP),
        ("ok no " * 5 + "ok ok no no ok no no no ok ok " * 8 + "ok no no no no ok ok no ok", FEW_WORDS),
        ("\x00\x01\x02\x03abc\x04\x05" * 10, CONTROL),
        ("\ufffd\ufffdx\ufffd" * 20, CONTROL),
        ("", EMPTY),
        ("   \n ", EMPTY),
    ],
)
def test_each_detector_sees_its_kind(text: str, kind: str) -> None:
    assert kind in look_at(text, 40).kinds


@pytest.mark.parametrize(
    "text",
    [
        prose(1),
        "ha ha ha, he said, and then he went home again",
        "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20",
        "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |",
        "!!!",
        "日本語のテキストもそのまま読めるはずです。東京は大きい都市です。",
        '{"title": "a", "count": 3, "tags": ["x", "y"], "done": true}',
    ],
)
def test_plain_answers_are_not_flagged(text: str) -> None:
    assert look_at(text, 40).kinds == ()


def test_the_repeated_unit_is_told() -> None:
    assert look_at("!" * 64, 64).unit == "!"


@settings(deadline=None)
@given(st.text(max_size=600), st.integers(0, 100))
def test_no_text_breaks_a_detector(text: str, tokens: int) -> None:
    look_at(text, tokens)


@settings(deadline=None)
@given(st.text(alphabet="ab", min_size=1, max_size=12), st.integers(2, 12))
def test_a_repeated_unit_is_always_found_as_such(unit: str, times: int) -> None:
    found = smallest_period(unit * times)
    assert found is not None
    assert found.covered == len(unit) * times
    assert len(found.unit) <= len(unit)


def test_good_answers_for_ever_are_no_finding() -> None:
    watch = GarbageWatch()
    feed(watch, [prose(i) for i in range(400)])
    assert watch.findings == []


def test_answers_that_collapse_after_a_good_beginning_are_garbage_with_first_request_and_examples() -> None:
    watch = GarbageWatch()
    feed(watch, [prose(i) for i in range(100)])
    feed(watch, ["!" * 64] * 12)
    assert watch.certain
    finding = watch.findings[0]
    assert "'!'" in finding.what
    assert finding.first == "request 0/100 sent t100"
    assert finding.examples[0].startswith("!!!")


def test_the_same_token_from_the_first_answer_on_is_garbage_when_sampled() -> None:
    watch = GarbageWatch()
    feed(watch, ["!" * 64] * 12)
    assert watch.certain


def test_a_small_model_that_loops_at_temperature_0_from_the_start_is_muted() -> None:
    watch = GarbageWatch()
    feed(watch, ["the the " * 20 if i % 2 else prose(i) for i in range(200)], temperature=0.0)
    assert not watch.certain
    assert ONE_TOKEN in watch.muted


def test_loops_that_begin_later_are_garbage_at_temperature_0_too() -> None:
    watch = GarbageWatch()
    feed(watch, [prose(i) for i in range(BASELINE + 20)], temperature=0.0)
    feed(watch, ["and so on, and on it goes for ever. " * 8] * 40, temperature=0.0)
    assert [f.kind for f in watch.findings if f.certain] == [LOOP]


def test_different_tokens_repeated_are_no_collapse_to_one() -> None:
    watch = GarbageWatch()
    feed(watch, [VOCABULARY[i] * 20 for i in range(30)])
    assert not watch.certain


def test_empty_answers_that_begin_later_are_garbage() -> None:
    watch = GarbageWatch()
    feed(watch, [prose(i) for i in range(80)])
    feed(watch, [""] * 12)
    assert watch.certain


def test_a_shift_of_finish_reasons_is_told_and_is_no_verdict() -> None:
    watch = GarbageWatch()
    feed(watch, [prose(i) for i in range(80)], finish="stop")
    feed(watch, [prose(i) for i in range(40)], finish="length")
    assert [f.kind for f in watch.findings] == ["finish-shift"]
    assert not watch.certain


def test_the_servers_own_count_of_nan_requests_is_certain_once_it_rises() -> None:
    watch = GarbageWatch()
    for value in (None, 3.0, 3.0):
        watch.metrics(value)
    assert not watch.certain
    watch.metrics(5.0)
    assert "2 requests with NaN" in watch.findings[0].what
