"""What a serving log tells, as rows: the story, its events, the configuration that really ran."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from crashlab.facts import EnvFact, HostReported
from crashlab.logs.cuda_errors import CudaErrors
from crashlab.logs.driver_facts import DriverLog


class StoryEvent(NamedTuple):
    """One thing that happened. ``kind`` is one of those in :mod:`crashlab.logs.serving_lines`, or
    ``gpu-dump``, ``cuda-error``, ``device-assert``, ``stalled``; ``time`` is the text as printed."""

    kind: str
    line: int
    text: str
    time: str | None = None
    process: str | None = None
    pid: int | None = None
    times: int = 1


class Throughput(NamedTuple):
    """One statistics line. Rates in tokens per second; ``corrupted`` requests and ``engine`` (of
    several, data parallel) only if printed."""

    line: int
    time: str | None
    prompt: float | None
    generation: float | None
    running: int | None
    waiting: int | None
    corrupted: int | None = None
    engine: int | None = None


class Backend(NamedTuple):
    """A choice that the server announced. ``role``: attention, moe, linear, sampler, runner, other."""

    role: str
    name: str
    line: int
    text: str


class GraphState(NamedTuple):
    """CUDA graphs in effect. ``state``: off, capturing, captured or configured (no later word)."""

    state: str
    reason: str
    line: int


class HttpCounts(NamedTuple):
    """Answers in the access log. Lines are those of the last success and the first failure."""

    ok: int = 0
    failed: int = 0
    last_ok: int | None = None
    first_failed: int | None = None
    health_ok: int = 0
    health_failed: int = 0
    health_ok_after_stall: int = 0


class ServingStory(NamedTuple):
    """The story of one server run as its log tells it.

    ``server``: vllm, sglang, llama.cpp or None. ``outcome``: gpu-fault, device-assert, stall,
    host-death, never-ready, out-of-memory, inconclusive (a GPU dump without an exception) or None (no
    failure in the log). ``died`` names the process that ended first, where the log does.
    ``sentences`` tell it all in order, in plain words; ``setting`` are those of them that say what ran, with
    CUDA graphs or without, and not what became of it.
    """

    server: str | None
    outcome: str | None
    sentences: tuple[str, ...]
    events: tuple[StoryEvent, ...]
    died: str | None = None
    died_at: str | None = None
    blamed: HostReported | None = None
    exit_code_lies: str | None = None
    setting: tuple[str, ...] = ()
    environment: Mapping[str, EnvFact] = {}
    config: Mapping[str, str] = {}
    backends: tuple[Backend, ...] = ()
    overrides: tuple[str, ...] = ()
    cuda_graphs: GraphState | None = None
    ready: StoryEvent | None = None
    throughput: tuple[Throughput, ...] = ()
    stalled: Throughput | None = None
    http: HttpCounts = HttpCounts()
    driver: DriverLog = DriverLog()
    errors: CudaErrors = CudaErrors()
