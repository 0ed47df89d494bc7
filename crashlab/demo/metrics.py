"""The simulated server's /metrics, with vLLM's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

FIELDS = (
    ("vllm:num_requests_running", "gauge"),
    ("vllm:num_requests_waiting", "gauge"),
    ("vllm:kv_cache_usage_perc", "gauge"),
    ("vllm:prefix_cache_queries_total", "counter"),
    ("vllm:prompt_tokens_total", "counter"),
    ("vllm:generation_tokens_total", "counter"),
    ("vllm:iteration_tokens_total_count", "histogram"),
)


def render(values: Sequence[float], finished: Mapping[str, int], model: str) -> str:
    """The exposition. ``values`` in the order of :data:`FIELDS`, as the engine last told them."""
    labels = f'engine="0",model_name="{model}"'
    out = []
    for (name, kind), value in zip(FIELDS, values, strict=True):
        family = name.removesuffix("_total" if kind == "counter" else "_count")
        out += [
            f"# HELP {family} Simulated.",
            f"# TYPE {family} {kind}",
            f"{name}{{{labels}}} {float(value)}",
        ]
    out += ["# HELP vllm:engine_sleep_state Simulated.", "# TYPE vllm:engine_sleep_state gauge"]
    out.append(f'vllm:engine_sleep_state{{{labels},sleep_state="awake"}} 1.0')
    out += ["# HELP vllm:request_success Simulated.", "# TYPE vllm:request_success counter"]
    for reason, count in sorted(finished.items()):
        out.append(f'vllm:request_success_total{{{labels},finished_reason="{reason}"}} {float(count)}')
    return "\n".join(out) + "\n"
