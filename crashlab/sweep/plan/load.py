"""The load of a sweep's runs: which options of ``crashlab soak`` and ``run`` a plan may give."""

from __future__ import annotations

from crashlab.errors import UsageError
from crashlab.sweep.plan.words import BASELINE, RUN
from crashlab.sweep.tomltext import Table

LOAD_OPTIONS = (
    "shape",
    "clients",
    "input-tokens",
    "output-tokens",
    "ignore-eos",
    "temperature",
    "prompts",
    "load-cmd",
    "model",
    "extra",
    "stall-after",
    "prefill-limit",
    "ready-within",
    "canary-every",
    "dump",
    "no-hang-dumps",
    "fast",
    "url",
    "replay",
    "linger",
    "grace",
)
"""Options of ``crashlab soak`` (or ``run``) that a plan may give in [load]; the budget has its own table."""

RUN_OPTIONS = ("dump", "no-hang-dumps", "fast", "stall-after", "linger", "grace")
"""Those of them that a program without load has."""
_RUN_ONLY = ("linger", "grace")
_ELSEWHERE = {
    "for": "How long one run takes at most is run-for in [budget].",
    "steps": "How much one run does at most is run-exposure in [budget], counted in its unit.",
    "requests": 'How much one run does at most is run-exposure in [budget], with unit = "requests".',
    "seed": "The seed stands at the top of the plan: seed = 7.",
    "repeat": "How many runs an arm has at most is max-runs in [budget].",
    "out": "The folder is given on the command line: crashlab sweep --out DIR PLAN.",
}
"""Options of ``crashlab soak`` that a plan says in another place."""


def read_load(table: Table, mode: str) -> tuple[dict[str, str], bool]:
    """(options of the load, whether a recorded baseline is replayed first). Raises UsageError."""
    known = RUN_OPTIONS if mode == RUN else tuple(key for key in LOAD_OPTIONS if key not in _RUN_ONLY)
    for key in table.names():
        if key in _ELSEWHERE:
            raise UsageError(f"{table.where}: {key!r} is no key here.", hint=_ELSEWHERE[key])
    words = {key: table.word(key) for key in known}
    table.done()
    out = {key: word for key in table.names() if (word := words[key]) is not None}
    first = out.get("replay") == BASELINE
    if first:
        del out["replay"]
    return out, first
