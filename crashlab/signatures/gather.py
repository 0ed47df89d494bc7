"""Everything that bears on one crash, from where it is said most directly, as one Observed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from crashlab.facts import EnvFact
from crashlab.signatures.logtext import LogText
from crashlab.signatures.observed import Observed, get, observe, rows, text


def gather(
    report: Any,
    *,
    env: Mapping[str, EnvFact] | None = None,
    log: Iterable[str] = (),
    run: Any = None,
) -> Observed:
    """Join a report, environment facts, log lines and the run's settings.

    For environment facts what the caller gives outranks the report, and the report the log's own
    text; for settings of the run, the caller outranks the command line, and that the log.
    """
    lines = LogText(chain(_own_lines(report), log))
    facts = {**_report_environment(report), **_normal(env or {})}
    settings = {**_from_argv(get(report, "run", "argv") or get(run, "argv")), **_settings(run)}
    xids = None
    if lines:
        from crashlab.signatures import logfacts

        said = logfacts.read(lines)
        facts, settings, xids = {**said.env, **facts}, {**said.run, **settings}, said.xids
    return observe(report, env=_derived(facts), run=settings, log=lines or None, xids=xids)


def _own_lines(report: Any) -> list[str]:
    """Text that the report quotes: the host's error, and the tails of the external readers."""
    lines = [get(report, "host", "reported", "text"), get(report, "host", "reported", "where")]
    for reader in ("cuda_gdb", "driver_log"):
        tail = text(get(report, "readers", reader, "tail"))
        lines.extend(tail.splitlines() if tail else ())
    return [line for line in lines if text(line)]


def _report_environment(report: Any) -> dict[str, EnvFact]:
    environment = get(report, "environment")
    facts = {}
    for key, fact in environment.items() if isinstance(environment, Mapping) else ():
        value, source = text(get(fact, "value")), text(get(fact, "source"))
        if isinstance(key, str) and value is not None:
            facts[key] = EnvFact(value, source or "report")
    return facts


def _normal(env: Mapping[str, EnvFact]) -> Mapping[str, EnvFact]:
    """Known keys are short lower-case words; only others need the table of spellings (and its import)."""
    if all(key.isidentifier() and key.islower() for key in env):
        return env
    from crashlab.signatures.environment import normal_key

    return {normal_key(key): fact for key, fact in env.items()}


def _derived(facts: dict[str, EnvFact]) -> Mapping[str, EnvFact]:
    if ("torch_cuda" in facts and "arch" in facts) or not {"torch", "gpu"} & facts.keys():
        return facts
    from crashlab.signatures.environment import derive

    return derive(facts)


def _from_argv(argv: Any) -> dict[str, EnvFact]:
    words = [word for word in rows(argv) if isinstance(word, str)]
    if not words:
        return {}
    from crashlab.signatures.logfacts import from_argv

    return from_argv(words)


def _settings(run: Any) -> dict[str, EnvFact]:
    if not isinstance(run, Mapping):
        return {}
    return {
        key: value if isinstance(value, EnvFact) else EnvFact(str(value), "run")
        for key, value in run.items()
        if key != "argv" and isinstance(value, (str, bool, int, EnvFact))
    }
