"""Metrics scrapes tell a freeze from progress; a single scrape tells neither."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.logs.probe import read_probe
from tests.unit.logs.material import recorded


def test_the_recorded_probe_froze_with_requests_running_while_health_was_fine() -> None:
    probe = read_probe(recorded("vllm/stall-probe.txt"))
    assert probe is not None
    assert probe.stalled is True
    assert (probe.frozen_from, probe.frozen_to, probe.frozen_samples) == (10.0, 35.0, 6)
    assert (probe.running, probe.waiting, probe.health_ok) == (16.0, 0.0, 6)
    assert probe.sentence is not None
    assert "16 requests running" in probe.sentence
    assert probe.samples[0].values["iteration_tokens_total_count"] == 1426.0


def test_a_single_scrape_cannot_tell() -> None:
    probe = read_probe(recorded("vllm/stall-metrics.txt.xz"))
    assert probe is not None
    assert (probe.stalled, probe.sentence, probe.running) == (None, None, 16.0)


def sample(at: int, tokens: int, running: int) -> str:
    return (
        f"== t={at}s health=200 models=200\nvllm:num_requests_running {running}.0 "
        f"vllm:generation_tokens_total {tokens}\n"
    )


def test_moving_counters_are_progress_and_an_idle_freeze_is_no_stall() -> None:
    moving = read_probe(sample(5, 1, 2) + sample(10, 2, 2))
    assert moving is not None
    assert moving.stalled is False
    idle = read_probe(sample(5, 7, 0) + sample(10, 7, 0))
    assert idle is not None
    assert (idle.stalled, idle.frozen_from) == (False, 5.0)


def test_a_slow_prefill_that_only_fills_the_cache_is_progress() -> None:
    lines = "".join(
        f"== t={at}s health=200\nvllm:num_requests_running 1 vllm:generation_tokens_total 5 "
        f"vllm:kv_cache_usage_perc 0.{at}\n"
        for at in (5, 6, 7)
    )
    probe = read_probe(lines)
    assert probe is not None
    assert probe.stalled is False


def test_several_engines_are_added_up() -> None:
    probe = read_probe(
        'vllm:num_requests_running{engine="0"} 3.0\nvllm:num_requests_running{engine="1"} 4.0\n'
    )
    assert probe is not None
    assert probe.running == 7.0


def test_text_without_metrics_is_no_probe() -> None:
    assert read_probe("hello: world\n") is None


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["== t=5s", " health=200", "vllm:num_requests_running ", "1.0.0", "2e9999", "-1", "\n"]
        )
        | st.text(max_size=10),
        max_size=30,
    )
)
def test_any_mixture_is_judged_without_complaint(parts: list[str]) -> None:
    probe = read_probe("".join(parts))
    assert probe is None or probe.stalled in (True, False, None)
