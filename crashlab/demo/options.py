"""The simulated server's command line: a few of vLLM's options and the scenario."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

SCENARIOS = ("fault", "stall", "garbage", "exit0", "slow-prefill", "never-ready", "none")


class DemoOptions(NamedTuple):
    """``after``: engine steps until the scenario begins. ``step_ms``: one engine step. ``prefill``:
    prompt tokens a step. ``request_log``: where to write when each request's first token was sent."""

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
    return DemoOptions(**vars(parser.parse_args(list(argv))))
