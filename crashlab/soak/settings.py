"""What a caller can ask of a soak."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from crashlab.soak.budget import Budget
from crashlab.soak.deadlines import Deadlines
from crashlab.soak.progress import Limits
from crashlab.soak.prompts import Source
from crashlab.soak.shapes import Sizes


class SoakSettings(NamedTuple):
    """Times in seconds. ``load_cmd`` replaces our own client; ``replay`` a log to send again.
    ``on_stall``: end (take evidence and stop) or note (write it down and go on)."""

    url: str
    model: str = ""
    key: str | None = None
    shape: str = "mixed"
    clients: int = 16
    seed: int = 0
    sizes: Sizes = Sizes()
    source: Source = Source()
    replay: str | None = None
    load_cmd: tuple[str, ...] = ()
    budget: Budget = Budget()
    deadlines: Deadlines = Deadlines()
    limits: Limits = Limits()
    canary_every: int | None = 200
    ready_within: float = 1800.0
    on_stall: str = "end"
    probe_interval: float = 1.0
    extra: Mapping[str, Any] | None = None
