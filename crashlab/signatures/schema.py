"""From the mapping that TOML gives to a checked :class:`~crashlab.signatures.entry.Entry`.

Strict on purpose: an unknown key, an unsafe pattern, a range that cannot be read, or a cause that
says "is" instead of describing, raises BadEntry with the entry's id and the key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from crashlab.gpucore.exceptions import code_of
from crashlab.signatures import faultclass, versions
from crashlab.signatures.criteria import KEYS, ORDER, Criterion
from crashlab.signatures.entry import (
    CAUSE,
    CONFIDENCES,
    KINDS,
    STATUSES,
    Clause,
    Entry,
    Picture,
    Theory,
)
from crashlab.signatures.errors import BadEntry
from crashlab.signatures.patterns import exact, folded

MAX_ITEMS = 64
_ID = re.compile(r"[A-Z0-9][A-Z0-9_+.-]{2,63}")
_DATE = re.compile(r"\d{4}-\d\d(?:-\d\d)?")
_ARCH = re.compile(r"sm_\d{2,3}[af]?|sm_\d{2,3}\+|sm_\d{1,2}x")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_ABOUT = ("id", "title", "kind", "status", "fixed_in", "date", "confidence", "reads_as")
_TOP = frozenset((*_ABOUT, "fix", "workaround", "references", "match", "hypothesis", "proof"))


def is_id(name: str) -> bool:
    """Whether an entry can have this id."""
    return _ID.fullmatch(name) is not None


def entry_from(table: Mapping[str, Any], source: str = "bundled") -> Entry:
    """Check and build one entry. Raises BadEntry."""
    name = table.get("id")
    if name is None:
        raise BadEntry("it has no id")
    if not isinstance(name, str) or not is_id(name):
        raise BadEntry(f"the id {name!r} is not upper-case letters, digits and hyphens")
    try:
        return _entry(name, table, source)
    except BadEntry as error:
        raise BadEntry(f"{name}: {error}", hint=error.hint) from error


def _entry(name: str, table: Mapping[str, Any], source: str) -> Entry:
    _known(table, _TOP, "entry")
    kind = _one_of(table, "kind", KINDS)
    entry = Entry(
        id=name,
        title=_text(table, "title"),
        kind=kind,
        status=_one_of(table, "status", STATUSES),
        confidence=_one_of(table, "confidence", CONFIDENCES),
        pictures=tuple(_picture(item) for item in _tables(table, "match")),
        theories=tuple(_theory(item) for item in _tables(table, "hypothesis")),
        date=_date(table),
        fixed_in=_optional(table, "fixed_in"),
        reads_as=_optional(table, "reads_as"),
        fix=_texts(table, "fix"),
        workaround=_texts(table, "workaround"),
        references=_texts(table, "references"),
        source=source,
    )
    if not entry.pictures:
        raise BadEntry("it has no [[match]]")
    if kind == CAUSE and not entry.theories:
        raise BadEntry("a cause needs at least one [[hypothesis]]")
    if kind != CAUSE and not entry.reads_as:
        raise BadEntry(f"a {kind} needs reads_as: how the verdict must be read")
    if entry.status == "fixed" and not entry.fixed_in:
        raise BadEntry("status fixed needs fixed_in")
    return entry


def criteria_from(table: Any, where: str) -> tuple[Criterion, ...]:
    """The questions of a table, cheapest first. Raises BadEntry."""
    if not isinstance(table, Mapping):
        raise BadEntry(f"{where} must be a table")
    made: list[Criterion] = []
    for key, value in table.items():
        if key not in KEYS:
            raise BadEntry(f"{where}: unknown key {key!r}", hint=f"Known keys: {', '.join(sorted(KEYS))}.")
        made.extend(_criterion(key, value, f"{where}.{key}"))
    return tuple(sorted(made, key=lambda criterion: ORDER[criterion.key]))


def _criterion(key: str, value: Any, where: str) -> Iterable[Criterion]:
    shape = KEYS[key].shape
    if shape in ("ranges", "levers"):
        if not isinstance(value, Mapping) or not value:
            raise BadEntry(f"{where} must be a table of name and value")
        for sub, want in value.items():
            if not _NAME.fullmatch(sub):
                raise BadEntry(f"{where}: {sub!r} is no fact name")
            if shape == "ranges":
                if not isinstance(want, str):
                    raise BadEntry(f"{where}.{sub} must be a version range in quotes")
                versions.parse_range(want)
                yield Criterion(key, sub, want)
            else:
                yield Criterion(key, sub, _patterns(want, f"{where}.{sub}", literal=0))
        return
    yield Criterion(key, None, _plain(shape, value, where))


def _plain(shape: str, value: Any, where: str) -> Any:
    if shape == "flag":
        if not isinstance(value, bool):
            raise BadEntry(f"{where} must be true or false")
        return value
    if shape == "number":
        return _integer(value, where)
    if shape in ("patterns", "names"):
        return _patterns(
            value, where, literal=3 if shape == "names" else 0, fold=where.endswith((".log", ".log_all"))
        )
    items = value if isinstance(value, list) else [value]
    if not items or len(items) > MAX_ITEMS:
        raise BadEntry(f"{where} must have 1 to {MAX_ITEMS} items")
    if shape == "integers":
        return tuple(_integer(item, where) for item in items)
    if shape == "exceptions":
        return tuple(_exception(item, where) for item in items)
    strings = _strings(items, where)
    if shape == "errors" and not set(strings) <= faultclass.ERRORS:
        raise BadEntry(f"{where}: not among {', '.join(sorted(faultclass.ERRORS))}")
    if shape == "arches" and not all(_ARCH.fullmatch(item) for item in strings):
        raise BadEntry(f'{where}: write "sm_120", "sm_12x" (a family) or "sm_100+"')
    return strings


def _exception(item: Any, where: str) -> int:
    if isinstance(item, str):
        code = code_of(item)
        if code is None:
            raise BadEntry(f"{where}: unknown exception name {item!r}", hint="Its number works as well.")
        return code
    return _integer(item, where)


def _integer(item: Any, where: str) -> int:
    if isinstance(item, bool) or not isinstance(item, int) or item < 0:
        raise BadEntry(f"{where}: {item!r} is no non-negative number")
    return item


def _strings(items: list[Any], where: str) -> tuple[str, ...]:
    if not all(isinstance(item, str) and 0 < len(item) <= 400 for item in items):
        raise BadEntry(f"{where} must hold non-empty strings")
    return tuple(items)


def _patterns(value: Any, where: str, *, literal: int, fold: bool = False) -> tuple[str, ...]:
    """Checked pattern texts; each alternative of each must hold ``literal`` plain characters in a row."""
    items = value if isinstance(value, list) else [value]
    if not items or len(items) > MAX_ITEMS:
        raise BadEntry(f"{where} must have 1 to {MAX_ITEMS} patterns")
    for item in _strings(items, where):
        for branch in (folded if fold else exact)(item).branches:
            if max(map(len, branch.literals), default=0) < literal:
                raise BadEntry(
                    f"{where}: {item!r} needs {literal} plain characters in a row in each alternative"
                )
    return tuple(items)


def _picture(table: Mapping[str, Any]) -> Picture:
    rest = {key: value for key, value in table.items() if key != "require"}
    criteria = criteria_from(rest, "match")
    if not any(not KEYS[criterion.key].circumstance for criterion in criteria):
        raise BadEntry("a [[match]] of versions alone would match every crash")
    require = frozenset(_texts(table, "require"))
    if not require <= {criterion.key for criterion in criteria}:
        raise BadEntry("match.require names a key that this [[match]] does not have")
    return Picture(criteria, require)


def _theory(table: Mapping[str, Any]) -> Theory:
    _known(table, frozenset(("cause", "for", "against", "tests")), "hypothesis")
    cause = _text(table, "cause")
    if cause[-1:] == ".":
        raise BadEntry("hypothesis.cause is a noun phrase after 'consistent with': no full stop")
    return Theory(
        cause,
        tuple(_clause(item, "for") for item in _tables(table, "for")),
        tuple(_clause(item, "against") for item in _tables(table, "against")),
        _texts(table, "tests"),
    )


def _clause(table: Mapping[str, Any], where: str) -> Clause:
    _known(table, frozenset(("when", "unless", "says", "weight", "decisive")), where)
    clause = Clause(
        criteria_from(table.get("when", {}), f"{where}.when"),
        _text(table, "says"),
        criteria_from(table.get("unless", {}), f"{where}.unless"),
        _integer(table.get("weight", 1), f"{where}.weight"),
        table.get("decisive", False) is True,
    )
    if not clause.when and not clause.unless:
        raise BadEntry(f"{where}: a clause needs when or unless")
    return clause


def _known(table: Mapping[str, Any], keys: frozenset[str], where: str) -> None:
    unknown = sorted(set(table) - keys)
    if unknown:
        raise BadEntry(f"{where}: unknown key {unknown[0]!r}", hint=f"Known keys: {', '.join(sorted(keys))}.")


def _tables(table: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise BadEntry(f"{key} must be an array of tables")
    if len(value) > MAX_ITEMS:
        raise BadEntry(f"{key} has more than {MAX_ITEMS} tables")
    return value


def _text(table: Mapping[str, Any], key: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value.strip() or len(value) > 2000:
        raise BadEntry(f"{key} must be a text of at most 2000 characters")
    return value.strip()


def _optional(table: Mapping[str, Any], key: str) -> str | None:
    return _text(table, key) if key in table else None


def _texts(table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or len(items) > MAX_ITEMS:
        raise BadEntry(f"{key} must be a list of texts")
    return tuple(_text({key: item}, key) for item in items)


def _one_of(table: Mapping[str, Any], key: str, allowed: tuple[str, ...]) -> str:
    value = table.get(key)
    if value not in allowed:
        raise BadEntry(f"{key} is {value!r}, not one of {', '.join(allowed)}")
    return str(value)


def _date(table: Mapping[str, Any]) -> str | None:
    """TOML dates arrive as objects: keep the text."""
    if "date" not in table:
        return None
    value = str(table["date"])
    if not _DATE.fullmatch(value):
        raise BadEntry(f"date is {value!r}, not YYYY-MM or YYYY-MM-DD")
    return value
