"""The simulated server's command line: a few of vLLM's options and the scenario."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

from crashlab.demo.answers import KINDS

SCENARIOS = ("fault", "stall", "garbage", "exit0", "slow-prefill", "never-ready", "none")
CUDAGRAPH_MODES = ("NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE")


class DemoOptions(NamedTuple):
    """``after``: engine steps until the scenario begins. ``step_ms``: one engine step. ``prefill``:
    prompt tokens a step. ``request_log``: where to write when each request's first token was sent.
    ``bug_every``: mean engine steps between faults of the planted bug (:mod:`crashlab.demo.planted`),
    0: none; the options below it are the levers that it may depend on, named as in vLLM. ``answers`` and
    what follows: what the server knows and what is wrong with it (:mod:`crashlab.demo.answers`)."""

    host: str = "127.0.0.1"
    port: int = 8000
    scenario: str = "none"
    after: int = 300
    step_ms: float = 10.0
    max_num_seqs: int = 256
    context: int = 4096
    prefill: int = 8192
    slow_seconds: float = 8.0
    startup: float = 0.5
    request_log: str | None = None
    quiet: bool = False
    bug_every: int = 0
    enforce_eager: bool = False
    cudagraph_mode: str = "FULL_AND_PIECEWISE"
    attention_backend: str = "FLASH_ATTN"
    moe_backend: str = "auto"
    kv_cache_dtype: str = "auto"
    prefix_caching: bool = True
    answers: str | None = None
    accuracy: float = 1.0
    noise: float = 0.0
    drop: float = 0.0
    degrade: str | None = None
    degrade_share: float = 1.0
    degrade_from_tokens: int = 0
    degrade_from_batch: int = 0


def parse(argv: Sequence[str]) -> DemoOptions:
    """Options of ``python -m crashlab.demo``."""
    parser = argparse.ArgumentParser(prog="python -m crashlab.demo", description=__doc__)
    default = DemoOptions()
    parser.add_argument("--host", default=default.host)
    parser.add_argument("--port", type=int, default=default.port)
    parser.add_argument("--scenario", choices=SCENARIOS, default=default.scenario)
    parser.add_argument("--after", type=int, default=default.after)
    parser.add_argument("--step-ms", type=float, default=default.step_ms)
    parser.add_argument("--max-num-seqs", type=int, default=default.max_num_seqs)
    parser.add_argument("--max-model-len", type=int, default=default.context, dest="context")
    parser.add_argument("--prefill", type=int, default=default.prefill)
    parser.add_argument("--slow-seconds", type=float, default=default.slow_seconds)
    parser.add_argument("--startup", type=float, default=default.startup)
    parser.add_argument("--request-log", default=None)
    parser.add_argument("--quiet", action="store_true")
    _add_levers(parser, default)
    _add_answers(parser, default)
    return DemoOptions(**vars(parser.parse_args(list(argv))))


def _add_levers(parser: argparse.ArgumentParser, default: DemoOptions) -> None:
    """The planted bug and what can be turned, so that ``crashlab sweep`` has something to find."""
    switch = argparse.BooleanOptionalAction
    levers = parser.add_argument_group("levers", "The planted bug and the options it may depend on.")
    levers.add_argument("--bug-every", type=int, default=default.bug_every)
    levers.add_argument("--enforce-eager", action=switch, default=default.enforce_eager)
    levers.add_argument(
        "-cc.cudagraph_mode", dest="cudagraph_mode", choices=CUDAGRAPH_MODES, default=default.cudagraph_mode
    )
    levers.add_argument("--attention-backend", default=default.attention_backend)
    levers.add_argument("--moe-backend", default=default.moe_backend)
    levers.add_argument("--kv-cache-dtype", default=default.kv_cache_dtype)
    levers.add_argument(
        "--enable-prefix-caching", dest="prefix_caching", action=switch, default=default.prefix_caching
    )


def _add_answers(parser: argparse.ArgumentParser, default: DemoOptions) -> None:
    """What the simulated model knows, and its flaws, so that ``crashlab quality`` has something to find."""
    group = parser.add_argument_group("answers", "Right answers, noise, dropped requests and garbage.")
    group.add_argument("--answers", default=None, metavar="JSONL")
    group.add_argument("--accuracy", type=float, default=default.accuracy)
    group.add_argument("--noise", type=float, default=default.noise)
    group.add_argument("--drop", type=float, default=default.drop)
    group.add_argument("--degrade", choices=KINDS, default=None)
    group.add_argument("--degrade-share", type=float, default=default.degrade_share)
    group.add_argument("--degrade-from-tokens", type=int, default=default.degrade_from_tokens)
    group.add_argument("--degrade-from-batch", type=int, default=default.degrade_from_batch)
