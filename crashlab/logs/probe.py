"""Metrics scrapes (Prometheus text, or a probe log of several) as evidence of a stall.

In a hang every metric freezes, gauges included, while ``/health`` answers 200. A probe log repeats
``== t=5s health=200 models=200`` and then ``name value`` pairs, on one line or on several.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from crashlab.logs.lazy import Lazy
from crashlab.logs.text import Line, read_lines

MAX_SAMPLES = 10_000
_MAX_VALUE = 1e100
"""Beyond it a number is damage. Infinities added up become NaN, which is never equal to itself: a frozen
counter would look as if it moved."""

_HEAD = Lazy(r"== t=(\d{1,9}(?:\.\d{1,6})?)s?(?: health=(\d{3}|-?\d))?(?: models=(\d{3}|-?\d))?")
_PAIR = Lazy(
    r"((?:vllm|sglang|llamacpp):[\w:]{1,128})(?:\{[^}]{0,1024}\})? "
    r"(-?[\d.]{1,32}(?:[eE][+-]?\d{1,4})?)(?=\s|$)"
)
# Counters and gauges that move whenever an engine works; bucket lines and histograms add nothing.
_PROGRESS = (
    "generation_tokens_total",
    "prompt_tokens_total",
    "iteration_tokens_total_count",
    "kv_cache_usage_perc",
    "prefix_cache_queries_total",
    "gen_throughput",
    "token_usage",
    "tokens_predicted_total",
    "n_decode_total",
)
_RUNNING = ("num_requests_running", "num_running_reqs", "requests_processing")
_WAITING = ("num_requests_waiting", "num_queue_reqs", "requests_deferred")


class ProbeSample(NamedTuple):
    """One scrape; ``at`` in seconds of the probe's clock, None for a lone scrape. Values of several
    engines are added up. Names come without their ``vllm:`` prefix."""

    at: float | None
    health: int | None
    values: Mapping[str, float]


class ProbeStory(NamedTuple):
    """``frozen_from`` and ``frozen_to`` bound the tail in which nothing moved; None if something did.

    ``health_ok`` counts the answers 200 within it. ``stalled``: frozen with requests running.
    """

    samples: tuple[ProbeSample, ...]
    frozen_from: float | None = None
    frozen_to: float | None = None
    frozen_samples: int = 0
    running: float | None = None
    waiting: float | None = None
    health_ok: int = 0

    @property
    def stalled(self) -> bool | None:
        """True or False; None when a single scrape cannot tell."""
        if len(self.samples) < 2:
            return None
        return self.frozen_from is not None and bool(self.running)

    @property
    def sentence(self) -> str | None:
        """The finding in words, if there is one."""
        if not self.stalled:
            return None
        text = (
            f"From {self.frozen_from:g} s to {self.frozen_to:g} s of the probe no counter moved with "
            f"{self.running:g} requests running"
        )
        if self.health_ok:
            text += f", and /health answered 200 all {self.health_ok} times"
        return text + "."


class ProbeReader:
    """Feed lines; :meth:`result` ends the reading."""

    def __init__(self) -> None:
        self._done: list[ProbeSample] = []
        self._at: float | None = None
        self._health: int | None = None
        self._values: dict[str, float] = {}

    def feed(self, line: Line) -> bool:
        """Read one line; True if it was used."""
        if line.text.startswith("== t=") and (head := _HEAD.match(line.text)):
            self._close()
            self._at = float(head.group(1))
            self._health = int(head.group(2)) if head.group(2) else None
            return True
        if ":" not in line.text or line.text.startswith("#"):
            return False
        used = False
        for found in _PAIR.finditer(line.text):
            name = found.group(1).split(":", 1)[1]
            if name in _PROGRESS or name in _RUNNING or name in _WAITING:
                used = True
                if (value := _float(found.group(2))) is not None:
                    self._values[name] = self._values.get(name, 0.0) + value
        return used

    def result(self) -> ProbeStory | None:
        """The story, or None if there was no metric at all."""
        self._close()
        return _judge(tuple(self._done)) if self._done else None

    def _close(self) -> None:
        if self._values and len(self._done) < MAX_SAMPLES:
            self._done.append(ProbeSample(self._at, self._health, self._values))
        self._values, self._at, self._health = {}, None, None


def _float(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if -_MAX_VALUE < value < _MAX_VALUE else None


def _judge(samples: tuple[ProbeSample, ...]) -> ProbeStory:
    last = samples[-1]
    running = next((last.values[name] for name in _RUNNING if name in last.values), None)
    waiting = next((last.values[name] for name in _WAITING if name in last.values), None)
    tail = [last]
    for sample in reversed(samples[:-1]):
        if sample.values != last.values:
            break
        tail.append(sample)
    times = [sample.at for sample in reversed(tail) if sample.at is not None]
    if len(tail) < 2 or len(times) < 2:
        return ProbeStory(samples, running=running, waiting=waiting)
    good = sum(1 for sample in tail if sample.health == 200)
    return ProbeStory(samples, times[0], times[-1], len(tail), running, waiting, good)


def read_probe(source: Iterable[bytes | str] | bytes | str) -> ProbeStory | None:
    """Parse a whole text, or the lines of one; None if it holds no metric. Raises nothing."""
    reader = ProbeReader()
    for line in read_lines(source):
        reader.feed(line)
    return reader.result()
