"""What a server's /metrics says about its progress. Names drift between versions: whatever is there is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

# role -> names, best first, with and without the server's prefix. vLLM 0.6 to 0.32, SGLang, llama.cpp.
PRIMARY: Mapping[str, tuple[str, ...]] = {
    "generation_tokens": (
        "vllm:generation_tokens_total",
        "sglang:generation_tokens_total",
        "llamacpp:tokens_predicted_total",
    ),
    "prompt_tokens": (
        "vllm:prompt_tokens_total",
        "sglang:prompt_tokens_total",
        "llamacpp:prompt_tokens_total",
    ),
    "engine_steps": ("vllm:iteration_tokens_total_count", "llamacpp:n_decode_total"),
}
SECONDARY: Mapping[str, tuple[str, ...]] = {
    "kv_usage": (
        "vllm:kv_cache_usage_perc",
        "vllm:gpu_cache_usage_perc",
        "sglang:token_usage",
        "llamacpp:kv_cache_usage_ratio",
    ),
    "prefix_queries": ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
    "used_tokens": ("sglang:num_used_tokens", "llamacpp:kv_cache_tokens"),
}
CONTEXT: Mapping[str, tuple[str, ...]] = {
    "running": ("vllm:num_requests_running", "sglang:num_running_reqs", "llamacpp:requests_processing"),
    "waiting": ("vllm:num_requests_waiting", "sglang:num_queue_reqs", "llamacpp:requests_deferred"),
    "preemptions": ("vllm:num_preemptions_total",),
    "corrupted": ("vllm:corrupted_requests_total",),
}
_SLEEP = "vllm:engine_sleep_state"
_FINISHED = "vllm:request_success_total"
_WANTED = {
    name: role for table in (PRIMARY, SECONDARY, CONTEXT) for role, names in table.items() for name in names
}
MAX_BYTES = 8 << 20
MAX_LINE = 16 << 10
"""The parser takes quadratic time for a label full of escaped quotes: 6 s for a megabyte."""
_MAX_VALUE = 1e300
"""As of a record of a run; a sum over every line that fits into an answer stays finite."""


class Counters(NamedTuple):
    """One reading. A role that the server does not have is absent. Several engines are summed.

    ``asleep``: vLLM's sleep mode is on. ``finished`` counts requests by reason. ``family``: vllm,
    sglang, llamacpp, or None when no name is known.
    """

    values: Mapping[str, float] = {}
    finished: Mapping[str, float] = {}
    asleep: bool | None = None
    family: str | None = None

    @property
    def primary(self) -> tuple[float, ...]:
        """Counters of which each step of the engine moves at least one."""
        return tuple(self.values[role] for role in PRIMARY if role in self.values)

    @property
    def secondary(self) -> tuple[float, ...]:
        """Values that also move while a long prompt is being prefilled."""
        return tuple(self.values[role] for role in SECONDARY if role in self.values)

    def get(self, role: str) -> float | None:
        """The value of a role."""
        return self.values.get(role)


def parse_metrics(text: str) -> Counters:
    """Read an exposition. Lines of no interest are not parsed at all; broken ones are left out."""
    from prometheus_client.parser import text_string_to_metric_families

    values: dict[str, dict[str, float]] = {}
    finished: dict[str, float] = {}
    awake: list[float] = []
    for line in text[:MAX_BYTES].split("\n"):
        name = line.partition("{")[0].partition(" ")[0]
        if (name not in _WANTED and name not in (_SLEEP, _FINISHED)) or len(line) > MAX_LINE:
            continue
        try:
            samples = [s for family in text_string_to_metric_families(line + "\n") for s in family.samples]
        except Exception:  # noqa: BLE001 - the parser's own exceptions are of many kinds
            continue
        for sample in samples:
            if not -_MAX_VALUE < sample.value < _MAX_VALUE:  # an integer may be one that no float holds
                continue
            number = float(sample.value)
            if name == _SLEEP:
                if sample.labels.get("sleep_state") == "awake":
                    awake.append(number)
            elif name == _FINISHED:
                reason = sample.labels.get("finished_reason", "")
                finished[reason] = finished.get(reason, 0.0) + number
            else:
                by_name = values.setdefault(_WANTED[name], {})
                by_name[name] = by_name.get(name, 0.0) + number
    family = next((name.partition(":")[0] for found in values.values() for name in found), None)
    return Counters(
        {role: _best(role, found) for role, found in values.items()},
        finished,
        all(one == 0 for one in awake) if awake else None,
        family,
    )


def _best(role: str, found: Mapping[str, float]) -> float:
    for table in (PRIMARY, SECONDARY, CONTEXT):
        for name in table.get(role, ()):
            if name in found:
                return found[name]
    return next(iter(found.values()))
