"""What a caller can ask of a quality run, and what one arm is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from crashlab.quality.task import Suite
from crashlab.soak.ask import COMPLETIONS
from crashlab.soak.deadlines import Deadlines

ALPHA = 0.01
MAX_LENGTH = 4096


class Settings(NamedTuple):
    """``passes``: how often arm A is asked (2: with an A/A pair). ``alpha``: the level of all tests of a run
    together. ``ladder``: ask again at other lengths and concurrencies. ``expect``: known share of right
    answers of a healthy server, for one arm ``alone``. ``lm_eval`` names its tasks, ``limit`` questions of each."""

    suite: Suite
    seed: int = 0
    concurrency: int = 16
    endpoint: str = COMPLETIONS
    passes: int = 2
    alpha: float = ALPHA
    ladder: bool = True
    max_length: int = MAX_LENGTH
    prose: bool = True
    expect: float | None = None
    deadlines: Deadlines = Deadlines(30.0, 600.0, 120.0, 900.0)
    ready_within: float = 1800.0
    alone: bool = False
    lm_eval: tuple[str, ...] = ()
    limit: int | None = None
    extra: Mapping[str, Any] | None = None


class Arm(NamedTuple):
    """``name`` A or B. ``argv`` of a server that is started here (empty: it runs already), with
    ``environment`` for it alone."""

    name: str
    url: str
    model: str = ""
    key: str | None = None
    argv: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
