"""Streams of bytes as answers: what is proper, and which error each defect is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.soak import classes
from crashlab.soak.answer import KEPT_CHARS, Answer
from crashlab.soak.sse import MAX_EVENT, EventStream


def event(**fields: Any) -> bytes:
    return b"data: " + json.dumps(fields).encode() + b"\n\n"


def token(text: str, finish: str | None = None) -> bytes:
    return event(choices=[{"index": 0, "text": text, "finish_reason": finish}])


DONE = b"data: [DONE]\n\n"
GOOD = token("one ") + token("two") + token("", "length")
USAGE = event(choices=[], usage={"prompt_tokens": 7, "completion_tokens": 9})


def read(*pieces: bytes) -> Answer:
    answer = Answer()
    for piece in pieces:
        answer.feed(piece)
    answer.end()
    return answer


def test_a_proper_stream_gives_text_tokens_finish_and_usage() -> None:
    answer = read(GOOD + USAGE + DONE)
    assert (answer.text, answer.tokens, answer.prompt_tokens) == ("one two", 9, 7)
    assert (answer.finish, answer.error, answer.chunks) == ("length", None, 2)


def test_without_usage_chunks_are_counted() -> None:
    assert read(GOOD + DONE).tokens == 2


def test_chat_deltas_and_reasoning_are_text_too() -> None:
    stream = event(choices=[{"delta": {"role": "assistant", "content": ""}}])
    stream += event(choices=[{"delta": {"reasoning_content": "hm "}}])
    stream += event(choices=[{"delta": {"content": "yes"}, "finish_reason": "stop"}]) + DONE
    answer = read(stream)
    assert (answer.text, answer.finish, answer.error) == ("hm yes", "stop", None)


@pytest.mark.parametrize(
    ("stream", "error"),
    [
        (token("one"), classes.TRUNCATED),
        (b"", classes.TRUNCATED),
        (token("one") + b'data: {"choi', classes.TRUNCATED),
        (token("", "stop") + DONE, classes.EMPTY),
        (b"data: {nonsense}\n\n", classes.MALFORMED),
        (b"data: [1, 2]\n\n", classes.MALFORMED),
        (b"<html>Bad Gateway</html>\n", classes.MALFORMED),
        (token("one") + event(error={"message": "EngineCore encountered an issue."}), classes.STREAM_ERROR),
        (event(error="gone") + DONE, classes.STREAM_ERROR),
        (b"data: " + b"x" * (MAX_EVENT + 10), classes.MALFORMED),
        (b"data: " + b"[" * 100_000 + b"\n\n", classes.MALFORMED),
    ],
)
def test_each_defect_has_its_class(stream: bytes, error: str) -> None:
    answer = read(stream)
    assert answer.error == error
    assert answer.detail


def test_the_first_defect_counts_and_the_servers_words_are_kept() -> None:
    answer = read(event(error={"message": "EngineCore encountered an issue."}), b"rubbish\n")
    assert (answer.error, answer.detail) == (classes.STREAM_ERROR, "EngineCore encountered an issue.")


def test_comments_and_other_fields_of_events_are_fine() -> None:
    assert read(b": ping\r\nevent: x\nid: 4\nretry: 10\n\n" + GOOD + DONE).error is None


def test_kept_text_is_bounded_and_counted_in_full() -> None:
    answer = read(*(token("x" * 1000) for _ in range(100)), token("", "length"))
    assert (len(answer.text), answer.chars) == (KEPT_CHARS, 100_000)


def test_counts_that_are_no_counts_are_not_believed() -> None:
    strange = event(choices=[], usage={"prompt_tokens": "7", "completion_tokens": -1})
    assert read(GOOD + strange + DONE).tokens == 2


@settings(deadline=None)
@given(st.integers(0, 400), st.integers(0, 400))
def test_where_the_network_cuts_makes_no_difference(one: int, other: int) -> None:
    stream = GOOD + USAGE + DONE
    a, b = sorted((min(one, len(stream)), min(other, len(stream))))
    answer = read(stream[:a], stream[a:b], stream[b:])
    assert (answer.text, answer.tokens, answer.error) == ("one two", 9, None)


@settings(deadline=None)
@given(st.lists(st.binary(max_size=200), max_size=8))
def test_no_bytes_break_the_reader(pieces: list[bytes]) -> None:
    read(*pieces)
    read(*(b"data: " + piece + b"\n" for piece in pieces))


def test_an_overlong_event_ends_the_reading_in_bounded_memory() -> None:
    stream = EventStream()
    for _ in range(20):
        stream.feed(b"x" * (MAX_EVENT // 8))
    assert stream.overlong
    assert not stream.pending
