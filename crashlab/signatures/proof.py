"""The proof that an entry carries: crashes it must match, and near misses it must not.

Fixtures are facts in plain keys, environment, settings of the run, and log lines. They pass through
the same code as a real report. An entry without at least one of both kinds fails the check.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from crashlab.facts import EnvFact, SignatureMatch
from crashlab.signatures.entry import Entry
from crashlab.signatures.errors import BadEntry
from crashlab.signatures.gather import gather
from crashlab.signatures.match import CONTRADICTED, MATCH, POSSIBLE, match_entry
from crashlab.signatures.observed import Observed

ABSENT = "absent"
_TEXTS = (
    "verdict", "precision", "kernel", "function", "library", "family", "opcode", "access", "space", "finding",
)  # fmt: skip
# fact -> its type in words, and the types that it may have.
_FACTS: Mapping[str, tuple[str, tuple[type, ...]]] = {
    **dict.fromkeys(_TEXTS, ("a text", (str,))),
    **dict.fromkeys(("exception", "arch", "address", "limit"), ("a number or a text", (int, str))),
    "width": ("a number", (int,)),
    **dict.fromkeys(("pc_in_image", "stray_lane"), ("true or false", (bool,))),
}
_LISTS: Mapping[str, tuple[str, type]] = {"hang": ("texts", str), "xid": ("numbers", int)}
_KEYS = frozenset(("says", "expect", "facts", "env", "run", "log"))


class Fixture(NamedTuple):
    """One case. ``expect`` is match or possible for a hit; absent, contradicted or None for a near miss."""

    says: str
    hit: bool
    expect: str | None
    seen: Observed


class Outcome(NamedTuple):
    """What the matcher said of one fixture; ``problem`` is None when that is what was expected."""

    entry: str
    fixture: str
    hit: bool
    status: str
    score: float
    problem: str | None


def fixtures_of(table: Mapping[str, Any]) -> tuple[Fixture, ...]:
    """The fixtures of a parsed entry file. Raises BadEntry when one of both kinds is missing."""
    name, proof = table.get("id"), table.get("proof")
    if not isinstance(proof, Mapping):
        raise BadEntry(f"{name}: no [[proof.match]] and no [[proof.near_miss]]")
    hits, misses = proof.get("match", []), proof.get("near_miss", [])
    if not isinstance(hits, list) or not isinstance(misses, list) or not hits or not misses:
        raise BadEntry(
            f"{name}: needs at least one [[proof.match]] and one [[proof.near_miss]]",
            hint="A near miss differs from the match in the one fact that decides.",
        )
    return (
        *(_fixture(item, True, f"{name}: proof.match") for item in hits),
        *(_fixture(item, False, f"{name}: proof.near_miss") for item in misses),
    )


def _fixture(item: Any, hit: bool, where: str) -> Fixture:
    if not isinstance(item, Mapping) or not isinstance(item.get("says"), str):
        raise BadEntry(f"{where} needs says: what the case shows")
    unknown = sorted(set(item) - _KEYS)
    if unknown:
        raise BadEntry(f"{where}: unknown key {unknown[0]!r}")
    expect = item.get("expect")
    allowed = (None, MATCH, POSSIBLE) if hit else (None, ABSENT, CONTRADICTED, POSSIBLE)
    if expect not in allowed:
        raise BadEntry(f"{where}: expect is {expect!r}")
    facts, log = item.get("facts", {}), item.get("log", [])
    if not isinstance(facts, Mapping) or not _all_are(log, str):
        raise BadEntry(f"{where}: facts must be a table and log a list of lines")
    env, run = _plain(item, "env", where), _plain(item, "run", where)
    seen = gather(report_of(facts, where), env=env, log=log, run=run)
    return Fixture(item["says"], hit, expect, seen)


def _plain(item: Mapping[str, Any], key: str, where: str) -> dict[str, EnvFact]:
    table = item.get(key, {})
    if not isinstance(table, Mapping):
        raise BadEntry(f"{where}: {key} must be a table")
    for name, value in table.items():
        if not isinstance(value, (str, int, float)):
            raise BadEntry(f"{where}: {key}.{name} must be a text, a number, true or false")
    return {
        name: EnvFact(str(value).lower() if isinstance(value, bool) else str(value), "fixture")
        for name, value in table.items()
    }


def report_of(facts: Mapping[str, Any], where: str = "facts") -> dict[str, Any]:
    """A report.json skeleton from a fixture's plain keys. Raises BadEntry on an unknown key or a value of
    another type: a reader would take it for a fact that was not captured."""
    for name, value in facts.items():
        _check_fact(name, value, where)
    exception = facts.get("exception")
    by_code = isinstance(exception, int)
    verdict: dict[str, Any] = {
        "kind": facts.get("verdict"),
        "exception": {
            "code": exception if by_code else None,
            "name": None if by_code else exception,
            "precision": facts.get("precision"),
        },
        "kernel": {"name": facts.get("kernel")},
        "function": {"name": facts.get("function")},
        "library": {"name": facts.get("library"), "family": facts.get("family")},
        "instruction": {
            "opcode": facts.get("opcode"),
            "access": facts.get("access"),
            "space": facts.get("space"),
            "width_bytes": facts.get("width"),
        },
        "address": {
            "value": facts.get("address"),
            "kind": facts.get("finding"),
            "limit": facts.get("limit"),
            "per_lane": _lanes(facts.get("stray_lane")),
        },
        "where": {"sm_arch": facts.get("arch")},
    }
    if "pc_in_image" in facts:
        verdict.update(pc=1, pc_source="errorpc", module={"index": 0 if facts["pc_in_image"] else None})
    if "hang" in facts:
        verdict["hang"] = {"groups": [{"state": state} for state in facts["hang"]]}
    return {"verdict": verdict, "xid": [{"code": code} for code in facts.get("xid", ())]}


def _check_fact(name: str, value: Any, where: str) -> None:
    if name in _LISTS:
        words, kind = _LISTS[name]
        if not _all_are(value, kind):
            raise BadEntry(f"{where}: the fact {name} must be a list of {words}")
    elif name in _FACTS:
        words, kinds = _FACTS[name]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise BadEntry(f"{where}: the fact {name} must be {words}")
    else:
        known = ", ".join(sorted((*_FACTS, *_LISTS)))
        raise BadEntry(f"{where}: unknown fact {name!r}", hint=f"Known facts: {known}.")


def _all_are(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, kind) and not isinstance(item, bool) for item in value
    )


def _lanes(stray: Any) -> list[dict[str, Any]]:
    """Two lanes of one access, the second bad: far away or beside the first. None: no lane is known."""
    if not isinstance(stray, bool):
        return []
    return [
        {"address": 1 << 40, "bad": False},
        {"address": (1 << 40) + ((1 << 36) if stray else 64), "bad": True},
    ]


def check(entry: Entry, table: Mapping[str, Any]) -> tuple[Outcome, ...]:
    """Run every fixture of an entry. Raises BadEntry when proof is missing or malformed."""
    return tuple(_run(entry, fixture) for fixture in fixtures_of(table))


def _run(entry: Entry, fixture: Fixture) -> Outcome:
    found = match_entry(entry, fixture.seen)
    status = ABSENT if found is None else found.status
    return Outcome(
        entry.id,
        fixture.says,
        fixture.hit,
        status,
        0.0 if found is None else found.score,
        _problem(fixture, status, found),
    )


def _problem(fixture: Fixture, status: str, found: SignatureMatch | None) -> str | None:
    if fixture.hit:
        wanted = fixture.expect or MATCH
        return None if status == wanted else f"expected {wanted}, got {status}"
    if fixture.expect is not None:
        return None if status == fixture.expect else f"expected {fixture.expect}, got {status}"
    if status in (ABSENT, CONTRADICTED):
        return None
    score = 0.0 if found is None else found.score
    return f"a near miss must not match, got {status} ({score:.2f})"
