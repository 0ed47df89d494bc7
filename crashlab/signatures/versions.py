"""Version numbers as people and tools write them, and ranges over them.

``packaging`` is no dependency, and it refuses what GPU stacks print anyway: drivers
("595.71.05"), four-part cuDNN numbers ("9.19.0.56"), llama.cpp builds ("b5518"). Ordering follows
PEP 440 (dev < pre < release < post, local part ignored). What has no order, a git hash or the
``0.1.dev…`` that setuptools-scm invents in a shallow clone, parses as None: unknown, never old.
"""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from crashlab.signatures.errors import BadEntry

MAX_TEXT = 100
_PRE = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}
_LAST = 1 << 60

# Patterns are compiled on first use (re caches them): start-up time is a product feature.
_VERSION = (
    r"v?(?P<release>\d{1,9}(?:\.\d{1,9}){0,5})"
    r"(?:[-_.]?(?P<pre>alpha|beta|preview|pre|rc|a|b|c)[-_.]?(?P<pre_n>\d{0,6}))?"
    r"(?:[-_.]?(?:post|rev|r)[-_.]?(?P<post>\d{0,6}))?"
    r"(?:[-_.]?dev[-_.]?(?P<dev>\d{0,12}))?"
    r"(?:[+][\w.+-]{1,60})?"
)
_BUILD = r"b(\d{1,6})(?:[-+ (].{0,80})?"
_OPERATORS = ("<=", ">=", "==", "!=", "<", ">", "=")


class Version(NamedTuple):
    """A comparable version; ``release`` without trailing zeros, so that 12.9 equals 12.9.0."""

    release: tuple[int, ...]
    pre: tuple[int, int]
    post: int
    dev: int


class Term(NamedTuple):
    """One comparison of a range: an operator and a version text, a ``$key`` or a ``1.2.*`` prefix."""

    operator: str
    operand: str


def parse(text: str) -> Version | None:
    """The version in ``text``, or None when it has no order (hash, branch name, shallow clone)."""
    return _parse(text[:MAX_TEXT].strip())


@lru_cache(maxsize=2048)
def _parse(text: str) -> Version | None:
    if text.isascii() and text.replace(".", "").isdigit():
        return _plain(text)
    if build := re.fullmatch(_BUILD, text, re.ASCII):
        return Version((int(build[1]),), (9, 0), -1, _LAST)
    found = re.fullmatch(_VERSION, text, re.ASCII)
    if found is None:
        return None
    base = _plain(found["release"])
    if base is None:
        return None
    release = base.release
    dev = None if found["dev"] is None else int(found["dev"] or 0)
    if release == (0, 1) and dev is not None:
        return None
    post = None if found["post"] is None else int(found["post"] or 0)
    if found["pre"] is not None:
        pre = (_PRE[found["pre"]], int(found["pre_n"] or 0))
    else:
        pre = (-1, 0) if dev is not None and post is None else (9, 0)
    return Version(release, pre, -1 if post is None else post, _LAST if dev is None else dev)


def _plain(text: str) -> Version | None:
    """A version of numbers and dots only."""
    parts = text.split(".")
    if not all(parts) or len(parts) > 6 or max(map(len, parts)) > 9:
        return None
    release = tuple(map(int, parts))
    if len(release) == 1 and release[0] > 99_999:  # an all-digit hash, a date
        return None
    while len(release) > 1 and release[-1] == 0:
        release = release[:-1]
    return Version(release, (9, 0), -1, _LAST)


@lru_cache(maxsize=4096)
def parse_range(text: str) -> tuple[tuple[Term, ...], ...]:
    """``">=0.6.11,<0.6.18 || ==0.5.*"`` as alternatives of conjunctions. Raises BadEntry."""
    alternatives = []
    for part in text[:500].split("||"):
        terms = []
        for piece in part.split(","):
            term = _term(piece.strip())
            if term is None:
                raise _bad(text, piece)
            terms.append(term)
        alternatives.append(tuple(terms))
    return tuple(alternatives)


def _term(piece: str) -> Term | None:
    operator = next((known for known in _OPERATORS if piece.startswith(known)), "")
    operand = piece[len(operator) :].strip()
    operator = "==" if operator in ("", "=") else operator
    if operand.startswith("$"):
        key = operand[1:]
        return Term(operator, operand) if key.isidentifier() and len(key) <= 40 else None
    number = operand.removesuffix(".*")
    if number != operand:
        plain = number.isascii() and number.replace(".", "").isdigit()
        return Term(operator, operand) if plain and operator in ("==", "!=") else None
    return Term(operator, operand) if parse(number) is not None else None


def _bad(text: str, piece: str) -> BadEntry:
    return BadEntry(
        f"cannot read the version range {text!r} at {piece.strip()!r}",
        hint='Write comparisons joined by commas, alternatives by ||: ">=0.6.11,<0.6.18 || ==0.5.*".',
    )


def contains(
    range_text: str, version_text: str, look_up: Callable[[str], str | None] | None = None
) -> bool | None:
    """Is the version in the range? None when a version in the comparison is unknown.

    ``look_up`` resolves ``$key`` operands, such as the ``$torch_cuda`` of "<$torch_cuda".
    """
    version = parse(version_text)
    if version is None:
        return None
    unknown = False
    for terms in parse_range(range_text):
        results = [_holds(term, version, look_up) for term in terms]
        if all(results):
            return True
        unknown = unknown or (None in results and False not in results)
    return None if unknown else False


def _holds(term: Term, version: Version, look_up: Callable[[str], str | None] | None) -> bool | None:
    operand = term.operand
    if operand.startswith("$"):
        found = look_up(operand[1:]) if look_up is not None else None
        if found is None:
            return None
        operand = found
    if operand.endswith(".*"):
        prefix = tuple(int(part) for part in operand[:-2].split("."))
        padded = version.release + (0,) * len(prefix)
        return (padded[: len(prefix)] == prefix) is (term.operator == "==")
    other = parse(operand)
    if other is None:
        return None
    if term.operator == "==":
        return version == other
    if term.operator == "!=":
        return version != other
    if term.operator == "<":
        return version < other
    if term.operator == "<=":
        return version <= other
    return version > other if term.operator == ">" else version >= other
