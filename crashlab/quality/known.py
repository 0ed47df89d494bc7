"""The arm's settings, and the known failures that fit what its answers look like."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from crashlab.facts import EnvFact, SignatureMatch
from crashlab.signatures import logfacts
from crashlab.signatures.logtext import LogText
from crashlab.signatures.match import match

_RANKS = {"match": 0, "possible": 1, "contradicted": 2}
_MOST = 8


def settings_of(
    argv: Sequence[str], environment: Mapping[str, str], log: Iterable[str] = ()
) -> dict[str, EnvFact]:
    """What the command line, the arm's own variables and the server's log say about its configuration.

    The log outranks the rest: servers print what they really chose.
    """
    said = logfacts.read(LogText(log))
    variables = {name.lower(): EnvFact(value, "environment") for name, value in environment.items()}
    return {**variables, **logfacts.from_argv(argv), **said.env, **said.run}


def known_failures(
    garbage: Sequence[str],
    argv: Sequence[str],
    log: Sequence[str] = (),
    env: Mapping[str, EnvFact] | None = None,
) -> tuple[SignatureMatch, ...]:
    """Catalogue entries for each kind of garbage seen, the best fit of each entry, best first."""
    best: dict[str, SignatureMatch] = {}
    for kind in garbage:
        facts: dict[str, EnvFact | str] = {**logfacts.from_argv(argv), "garbage": kind}
        facts.update({key: fact for key, fact in (env or {}).items() if key not in facts})
        for found in match({"verdict": {"kind": "garbage"}}, env=env, log=log, run=facts):
            old = best.get(found.id)
            if old is None or _rank(found) < _rank(old):
                best[found.id] = found
    return tuple(sorted(best.values(), key=_rank)[:_MOST])


def _rank(one: SignatureMatch) -> tuple[int, int, float, str]:
    return _RANKS.get(one.status, 3), one.kind != "cause", -one.score, one.id
