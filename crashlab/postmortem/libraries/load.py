"""Read and check the TOML files of this folder. Used by the generator and the tests, not at run time.

A file holds ``library`` (the name in reports), optionally ``files`` (beginnings of the names of shared
libraries that bring its kernels; with a slash: any part of the path), ``paths`` (parts of the paths of its
sources), ``always_loaded``, and ``[[rule]]`` tables:

``id``              unique, ``[a-z0-9-]``
``head``, ``name``  beginnings of, or the whole, qualified function name: one of them must fit
``contains``        literals, one of which the words of the symbol must hold (cheap: tried before ``match``)
``match``           a regular expression that must be found in the words
``unless``          literals that none of the words may hold
``module``          what the module must be (keys: ``rule.Asked``); unknown means no
``support``         what raises the confidence by one level when it holds
``rank``            0 to 100; of the rules that fit, those of the highest ten (90 to 99, 80 to 89, …) compete:
                    the most confident wins, then the highest rank. 90: a namespace or prefix that only this
                    library uses; 60: distinct names; 40: names that others may use; below: hints
``confidence``      high (default), medium or low, by the name alone
``details``         expressions whose named groups become ``Library.details``
``source_details``  the same, on the source file of the faulting line
``set``             constant details
``family``          a template for the family, with the details and ``{family}`` as fields

Words are those of :class:`crashlab.postmortem.kernelname.Name`. Expressions must be linear-time: no group
with a quantifier may hold another unbounded quantifier.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crashlab.errors import UsageError
from crashlab.postmortem.libraries.rule import LEVELS, NUMBER_KEYS, TEXT_KEYS, Asked, Owner, Rule

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover - the same parser under its earlier name
    import tomli as tomllib

FOLDER = Path(__file__).parent

_ID = re.compile(r"[a-z0-9-]+")
_UNBOUNDED_IN_REPEATED_GROUP = re.compile(r"\((?:\?[:P<>\w]*)?[^()]*[*+][^()]*\)(?:[*+]|\{\d*,\})")
_OWNER_KEYS = frozenset({"library", "files", "paths", "always_loaded", "rule"})


def load(folder: Path = FOLDER) -> tuple[dict[str, Owner], tuple[Rule, ...]]:
    """All libraries, and all rules with the highest rank first (within a rank: by file name, then order).

    Raises UsageError, naming file and rule, when a file breaks the format above.
    """
    owners: dict[str, Owner] = {}
    rules: list[Rule] = []
    for path in sorted(folder.glob("*.toml")):
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UsageError(f"{path.name}: not valid TOML: {error}") from error
        owner = _owner(path.name, data)
        if data["library"] in owners:
            raise UsageError(f"{path.name}: {data['library']} has a file already")
        owners[data["library"]] = owner
        rules.extend(_rule(path.name, data["library"], raw) for raw in data.get("rule", []))
    seen: set[str] = set()
    for rule in rules:
        if rule.id in seen:
            raise UsageError(f"rule id {rule.id} is used twice")
        seen.add(rule.id)
    rules.sort(key=lambda rule: -rule.rank)
    return owners, tuple(rules)


def _owner(where: str, data: Mapping[str, Any]) -> Owner:
    unknown = set(data) - _OWNER_KEYS
    if unknown or not isinstance(data.get("library"), str):
        raise UsageError(
            f"{where}: needs a library name; unknown keys: {', '.join(sorted(unknown)) or 'none'}"
        )
    if not isinstance(data.get("rule", []), list):
        raise UsageError(f"{where}: rules are written [[rule]]")
    always = data.get("always_loaded", False)
    return _texts(where, data, "files"), _texts(where, data, "paths"), bool(always)


def _rule(where: str, library: str, raw: Any) -> Rule:
    if not isinstance(raw, dict) or not isinstance(raw.get("id"), str) or not _ID.fullmatch(raw["id"]):
        raise UsageError(f"{where}: every rule needs an id of small letters, digits and hyphens")
    where = f"{where}: {raw['id']}"
    unknown = set(raw) - (set(Rule._fields) - {"library"})
    if unknown:
        raise UsageError(f"{where}: unknown keys: {', '.join(sorted(unknown))}")
    rank, confidence = raw.get("rank", 60), raw.get("confidence", "high")
    if not isinstance(rank, int) or not 0 <= rank <= 100 or confidence not in LEVELS:
        raise UsageError(f"{where}: rank is 0 to 100, confidence one of {', '.join(LEVELS)}")
    constants = raw.get("set", {})
    if not isinstance(constants, dict) or not all(isinstance(text, str) for text in constants.values()):
        raise UsageError(f"{where}: set holds texts")
    rule = Rule(
        id=raw["id"],
        library=library,
        rank=rank,
        confidence=confidence,
        head=_texts(where, raw, "head"),
        name=_texts(where, raw, "name"),
        contains=_texts(where, raw, "contains"),
        match=_text(where, raw, "match"),
        unless=_texts(where, raw, "unless"),
        module=_module(where, raw, "module"),
        support=_module(where, raw, "support"),
        family=_text(where, raw, "family"),
        details=_texts(where, raw, "details"),
        source_details=_texts(where, raw, "source_details"),
        set=tuple(sorted(constants.items())),
    )
    if not (rule.head or rule.name or rule.contains or rule.match or rule.module):
        raise UsageError(f"{where}: a rule without a condition fits everything")
    for expression in (rule.match, *rule.details, *rule.source_details):
        _check_expression(where, expression)
    return rule


def _check_expression(where: str, expression: str | None) -> None:
    if expression is None:
        return
    try:
        re.compile(expression)
    except re.error as error:
        raise UsageError(f"{where}: {expression!r} is no regular expression: {error}") from error
    if _UNBOUNDED_IN_REPEATED_GROUP.search(expression):
        raise UsageError(f"{where}: {expression!r} repeats a repetition: not linear-time")


def _texts(where: str, raw: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = raw.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise UsageError(f"{where}: {key} is a list of texts that are not empty")
    return tuple(value)


def _text(where: str, raw: Mapping[str, Any], key: str) -> str | None:
    value = raw.get(key)
    if value is not None and (not isinstance(value, str) or not value):
        raise UsageError(f"{where}: {key} is a text that is not empty")
    return value


def _module(where: str, raw: Mapping[str, Any], key: str) -> Asked:
    value = raw.get(key)
    if value is None:
        return ()
    allowed = {*TEXT_KEYS, *NUMBER_KEYS, "line_info"}
    if not isinstance(value, dict) or not value or set(value) - allowed:
        raise UsageError(f"{where}: {key} has keys out of {', '.join(sorted(allowed))}")
    asked: list[tuple[str, tuple[str, ...] | int | bool]] = []
    for name, wanted in value.items():
        truth = isinstance(wanted, bool)
        if name in TEXT_KEYS:
            asked.append((name, _texts(where, value, name)))
        elif truth if name == "line_info" else (isinstance(wanted, int) and not truth and wanted >= 0):
            asked.append((name, wanted))
        else:
            raise UsageError(f"{where}: {key}: {name} = {wanted!r} makes no sense")
    return tuple(asked)
