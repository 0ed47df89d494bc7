"""What each shape sends: the same for the same seed, within the server's context, and true to its name."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.errors import CrashlabError, UnreadableInput
from crashlab.soak.ask import CHAT, Ask
from crashlab.soak.prompts import Source, load_source, prompt_of
from crashlab.soak.shapes import SHAPES, Lane, Sizes

SIZES = Sizes((16, 200), (8, 64), context=512)
PLAIN = Source(tokens_a_word=1.0)


def asks(shape: str, count: int, *, seed: int = 1, lane: int = 0, sizes: Sizes = SIZES) -> list[Ask]:
    one = Lane(shape, seed, lane, sizes, PLAIN)
    out = []
    for _ in range(count):
        out.append(one.next())
        one.answered("word " * 20, 20)
    return out


@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_seed_gives_the_same_load_and_another_seed_another(shape: str) -> None:
    assert asks(shape, 12) == asks(shape, 12)
    assert asks(shape, 12) != asks(shape, 12, seed=2)
    assert asks(shape, 12) != asks(shape, 12, lane=1)


@pytest.mark.parametrize("shape", SHAPES)
@settings(deadline=None)
@given(
    seed=st.integers(0, 1000),
    context=st.integers(64, 2048),
    low=st.integers(1, 500),
    more=st.integers(0, 3000),
    output=st.integers(1, 600),
)
def test_prompt_and_answer_fit_into_the_context(
    shape: str, seed: int, context: int, low: int, more: int, output: int
) -> None:
    sizes = Sizes((low, low + more), (1, output), context=context)
    for ask in asks(shape, 6, seed=seed, sizes=sizes):
        words = sum(len(message.split()) for message in ask.messages)
        assert words + ask.max_tokens <= context
        assert ask.max_tokens >= 1
        assert words >= 1


def test_growing_conversations_grow_by_what_was_answered_and_start_anew_at_the_limit() -> None:
    found = asks("growing", 30)
    lengths = [len(ask.messages) for ask in found]
    assert lengths[:3] == [1, 3, 5]
    assert found[1].messages[1].startswith("word word")
    assert lengths.count(1) > 1
    assert all(ask.endpoint == CHAT for ask in found)


def test_a_conversation_starts_anew_when_no_answer_came() -> None:
    lane = Lane("growing", 1, 0, SIZES, PLAIN)
    lane.next()
    lane.answered("fine", 1)
    assert len(lane.next().messages) == 3
    lane.answered(None, 0)
    assert len(lane.next().messages) == 1


def test_shared_prefixes_are_shared_between_clients() -> None:
    def heads(lane: int) -> set[str]:
        return {ask.messages[0][:80] for ask in asks("shared-prefix", 40, lane=lane)}

    assert heads(0) == heads(1)
    assert 2 <= len(heads(0)) <= 8


def test_a_storm_comes_together_with_long_prompts_and_short_answers() -> None:
    for ask in asks("prefill-storm", 5):
        assert ask.together
        assert len(ask.messages[0].split()) == 200
        assert ask.max_tokens <= 8


def test_cancelling_clients_hang_up_before_the_answer_can_end() -> None:
    found = asks("cancel-churn", 100)
    assert all(ask.cancel_after is not None and ask.cancel_after < ask.max_tokens for ask in found)
    assert any(ask.cancel_after == 0 for ask in found)


def test_mixed_has_many_shapes_and_never_makes_everybody_wait() -> None:
    found = asks("mixed", 120)
    assert {ask.shape for ask in found} == {*SHAPES} - {"mixed", "prefill-storm"}
    assert not any(ask.together for ask in found)


def test_in_a_mixture_conversations_only_take_up_their_own_answers() -> None:
    growing = [ask for ask in asks("mixed", 200) if ask.shape == "growing"]
    assert any(len(ask.messages) >= 5 for ask in growing)
    assert all(len(ask.messages) % 2 == 1 for ask in growing)


def test_a_body_says_what_is_wanted_and_sends_no_seed() -> None:
    ask = asks("json", 1)[0]
    body = json.loads(ask.body("m", {"top_p": 0.5}))
    assert body["response_format"]["type"] == "json_schema"
    assert body["messages"][0]["role"] == "user"
    assert (body["model"], body["stream"], body["top_p"]) == ("m", True, 0.5)
    assert "seed" not in body
    decode = json.loads(asks("decode-heavy", 1)[0].body("m"))
    assert decode["ignore_eos"] is True
    assert isinstance(decode["prompt"], str)


def test_token_counts_use_the_measured_ratio() -> None:
    source = Source(tokens_a_word=4.0)
    ask = Lane("fresh", 1, 0, Sizes((400, 400), (8, 8)), source).next()
    assert len(ask.messages[0].split()) == 100


def test_a_text_file_gives_running_text(tmp_path: Path) -> None:
    path = tmp_path / "book.txt"
    path.write_text("call me what you like some years ago")
    source = load_source(str(path))
    text = Lane("fresh", 1, 0, Sizes((8, 8), (4, 4)), source._replace(tokens_a_word=1.0)).next().messages[0]
    assert text in "call me what you like some years ago " * 3


@pytest.mark.parametrize(
    "record",
    [
        {"prompt": "hello there"},
        {"question": "hello there"},
        {"messages": [{"role": "user", "content": "hello there"}]},
        {"conversations": [{"from": "human", "value": "hello there"}]},
    ],
)
def test_known_forms_of_jsonl_give_their_prompts(tmp_path: Path, record: dict[str, object]) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(json.dumps(record) + "\n" + json.dumps({"other": 1}) + "\n")
    assert load_source(str(path)).whole == ("hello there",)


@pytest.mark.parametrize("content", ["", "  \n\n ", '{"other": 1}\n', '{"prompt": "  "}\n'])
def test_files_without_text_are_refused_with_the_reason(tmp_path: Path, content: str) -> None:
    path = tmp_path / "p"
    path.write_text(content)
    with pytest.raises(UnreadableInput):
        load_source(str(path))


def test_a_missing_file_is_refused() -> None:
    with pytest.raises(UnreadableInput, match="cannot read the prompts"):
        load_source("/nonexistent/prompts")


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_no_file_breaks_the_reader(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(content)
    with contextlib.suppress(CrashlabError):
        load_source(str(path))


def test_odd_records_have_no_prompt() -> None:
    assert prompt_of({"messages": ["x"], "conversations": {}}) is None
    assert prompt_of(None) is None
