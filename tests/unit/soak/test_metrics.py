"""Reading /metrics of vLLM (recorded), SGLang and llama.cpp (by their names), and of nobody."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.soak.metrics import parse_metrics

DATA = Path(__file__).resolve().parents[2] / "data" / "soak"


def test_the_recorded_metrics_of_vllm_give_every_role() -> None:
    counters = parse_metrics((DATA / "vllm-stall-metrics.txt").read_text())
    assert counters.family == "vllm"
    assert counters.primary == (22085.0, 35207.0, 1496.0)
    assert counters.secondary == (0.0001288268388620617, 35207.0)
    assert counters.get("running") == 16.0
    assert counters.get("waiting") == 0.0
    assert counters.asleep is False
    assert counters.finished["length"] == 338.0
    assert counters.get("corrupted") is None


def test_several_engines_are_summed() -> None:
    text = 'vllm:generation_tokens_total{engine="0"} 5\nvllm:generation_tokens_total{engine="1"} 7\n'
    assert parse_metrics(text).get("generation_tokens") == 12.0


def test_an_old_and_a_new_name_of_one_thing_are_not_summed() -> None:
    text = "vllm:gpu_cache_usage_perc 0.25\nvllm:kv_cache_usage_perc 0.25\n"
    assert parse_metrics(text).secondary == (0.25,)


@pytest.mark.parametrize(
    ("text", "family", "primary"),
    [
        ("sglang:generation_tokens_total 7\nsglang:prompt_tokens_total 9\n", "sglang", (7.0, 9.0)),
        ("llamacpp:tokens_predicted_total 3\nllamacpp:n_decode_total 2\n", "llamacpp", (3.0, 2.0)),
    ],
)
def test_other_servers_are_known_by_their_names(text: str, family: str, primary: tuple[float, ...]) -> None:
    counters = parse_metrics(text)
    assert (counters.family, counters.primary) == (family, primary)


def test_sleep_is_the_servers_own_word() -> None:
    text = 'vllm:engine_sleep_state{sleep_state="awake"} 0.0\nvllm:engine_sleep_state{sleep_state="x"} 1.0\n'
    assert parse_metrics(text).asleep is True


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "abc", ""])
def test_values_that_are_no_numbers_are_left_out(value: str) -> None:
    counters = parse_metrics(f"vllm:generation_tokens_total {value}\nvllm:num_requests_running 2\n")
    assert counters.get("generation_tokens") is None
    assert counters.get("running") == 2.0


def test_a_page_of_something_else_holds_nothing() -> None:
    counters = parse_metrics("<html>not here</html>\ngo_goroutines 5\n")
    assert not counters.values
    assert counters.family is None


@settings(deadline=None)
@given(st.text(max_size=400))
def test_no_text_breaks_the_reader(text: str) -> None:
    parse_metrics("vllm:generation_tokens_total" + text)
    parse_metrics(text)
