"""A catalogue entry in memory. Immutable; built by :mod:`~crashlab.signatures.schema`."""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

from typing import Any, NamedTuple

from crashlab.signatures.criteria import Criterion

CAUSE = "cause"
CLASSIFICATION = "classification"
SYMPTOM = "symptom"
KINDS = (CAUSE, SYMPTOM, CLASSIFICATION)
STATUSES = ("open", "fixed", "by-design")
CONFIDENCES = ("high", "medium", "low")


class Picture(NamedTuple):
    """One way the failure looks: all ``criteria`` together; those in ``require`` must be known."""

    criteria: tuple[Criterion, ...]
    require: frozenset[str] = frozenset()


class Clause(NamedTuple):
    """A piece of evidence. It fires when all of ``when`` hold and not all of ``unless`` do.

    ``decisive``: as evidence against, it rules the hypothesis out.
    """

    when: tuple[Criterion, ...]
    says: str
    unless: tuple[Criterion, ...] = ()
    weight: int = 1
    decisive: bool = False


class Theory(NamedTuple):
    """One hypothesis of an entry. The first of an entry is the one that its picture supports."""

    cause: str
    supporting: tuple[Clause, ...] = ()
    against: tuple[Clause, ...] = ()
    tests: tuple[str, ...] = ()


class Entry(NamedTuple):
    """A known failure. ``reads_as`` is how a classification or symptom changes the verdict's reading.

    ``source`` names the catalogue it came from: ``bundled``, a folder, or an entry point.
    """

    id: str
    title: str
    kind: str
    status: str
    confidence: str
    pictures: tuple[Picture, ...]
    theories: tuple[Theory, ...] = ()
    date: str | None = None
    fixed_in: str | None = None
    reads_as: str | None = None
    fix: tuple[str, ...] = ()
    workaround: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    source: str = "bundled"

    def full(self) -> "Entry":
        """Itself; see :class:`Card`."""
        return self


class Card:
    """An entry whose hypotheses and texts stay packed until its picture fits.

    Unpacking all entries on every run would cost more than matching them.
    """

    __slots__ = ("_plain", "id", "kind", "pictures")

    def __init__(self, plain: dict[str, Any]) -> None:
        self.id: str = plain["id"]
        self.kind: str = plain["kind"]
        self.pictures = _load_pictures(plain["match"])
        self._plain = plain

    def full(self) -> Entry:
        """The whole entry."""
        import json

        return from_plain({**self._plain, **json.loads(self._plain["rest"])})


def to_plain(entry: Entry) -> dict[str, Any]:
    """The entry as JSON-ready values, for the compiled catalogue and ``signatures show --json``."""
    plain: dict[str, Any] = {
        key: value
        for key, value in entry._asdict().items()
        if key not in ("pictures", "theories", "source") and value not in (None, ())
    }
    plain["match"] = [_picture(picture) for picture in entry.pictures]
    if entry.theories:
        plain["hypotheses"] = [
            {
                "cause": theory.cause,
                "for": [_clause(clause) for clause in theory.supporting],
                "against": [_clause(clause) for clause in theory.against],
                "tests": list(theory.tests),
            }
            for theory in entry.theories
        ]
    return plain


def _picture(picture: Picture) -> dict[str, Any]:
    plain: dict[str, Any] = {"criteria": _criteria(picture.criteria)}
    if picture.require:
        plain["require"] = sorted(picture.require)
    return plain


def _clause(clause: Clause) -> dict[str, Any]:
    plain: dict[str, Any] = {"says": clause.says}
    if clause.when:
        plain["when"] = _criteria(clause.when)
    if clause.unless:
        plain["unless"] = _criteria(clause.unless)
    if clause.weight != 1:
        plain["weight"] = clause.weight
    if clause.decisive:
        plain["decisive"] = True
    return plain


def _criteria(criteria: tuple[Criterion, ...]) -> list[list[Any]]:
    return [[key, sub, list(want) if isinstance(want, tuple) else want] for key, sub, want in criteria]


def from_plain(plain: dict[str, Any], source: str = "bundled") -> Entry:
    """The inverse of :func:`to_plain`, without validation: only for what this package compiled."""
    return Entry(
        id=plain["id"],
        title=plain["title"],
        kind=plain["kind"],
        status=plain["status"],
        confidence=plain["confidence"],
        pictures=_load_pictures(plain["match"]),
        theories=tuple(
            Theory(
                item["cause"],
                tuple(_load_clause(clause) for clause in item["for"]),
                tuple(_load_clause(clause) for clause in item["against"]),
                tuple(item["tests"]),
            )
            for item in plain.get("hypotheses", ())
        ),
        date=plain.get("date"),
        fixed_in=plain.get("fixed_in"),
        reads_as=plain.get("reads_as"),
        fix=tuple(plain.get("fix", ())),
        workaround=tuple(plain.get("workaround", ())),
        references=tuple(plain.get("references", ())),
        source=source,
    )


def _load_pictures(rows: list[dict[str, Any]]) -> tuple[Picture, ...]:
    return tuple(Picture(_load(row["criteria"]), frozenset(row.get("require", ()))) for row in rows)


def _load(rows: list[list[Any]]) -> tuple[Criterion, ...]:
    return tuple(
        Criterion(key, sub, tuple(want) if isinstance(want, list) else want) for key, sub, want in rows
    )


def _load_clause(plain: dict[str, Any]) -> Clause:
    return Clause(
        _load(plain.get("when", [])),
        plain["says"],
        _load(plain.get("unless", [])),
        plain.get("weight", 1),
        plain.get("decisive", False),
    )
