"""A small, safe pattern language for kernel names and log lines.

Catalogue entries, also those of strangers, are matched against bytes that may be hostile, so a
pattern is a subset of Python's regular expressions whose worst case is bounded by construction:

* ``.*`` outside groups means "later in the same text". The pattern is cut there, and each piece is
  searched after the one before (leftmost match first), which costs one pass a piece.
* Any other ``*`` or ``+`` repeats one character or class at most :data:`REPEAT` times.
* Groups may alternate and may be optional, but are never repeated; no backreference, no look-around.
* The product of what the repeats of a piece may try is at most :data:`MAX_COST`.

Every piece's literal text is required to occur before a regular expression runs at all.
"""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

import re
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from crashlab.signatures.errors import BadEntry

REPEAT = 30
MAX_COST = 1000
MAX_PATTERN = 400
MAX_SUBJECT = 8192
_MAX_DEPTH = 4
_META = frozenset(".^$*+?{}[]\\|()")
_CLASS_ESCAPES = frozenset("dDsSwW")
_SET_OPERATORS = frozenset("-&~|")
# Compiled on first use: start-up time is a product feature.
_QUANTIFIER = r"[*+?]|\{\d{0,3}(?:,\d{0,3})?\}"
_CLASS_BODY = r"(\^?\]?(?:[^\]\\]|\\.)*)\]"
_CLASS_PART = r"\\.|."


class Branch(NamedTuple):
    """One alternative: literals that must occur, and the expressions to find one after the other.

    ``words`` are the whole words inside the literals: a text that lacks one cannot match.
    """

    literals: tuple[str, ...]
    pieces: tuple[str, ...]
    words: frozenset[str] = frozenset()


class Pattern(NamedTuple):
    """A checked pattern. ``text`` is what the author wrote."""

    text: str
    branches: tuple[Branch, ...]
    ignore_case: bool

    def search(self, subject: str) -> bool:
        """Does the pattern occur in the first :data:`MAX_SUBJECT` characters of ``subject``?"""
        subject = subject[:MAX_SUBJECT]
        folded = subject.lower() if self.ignore_case else subject
        return any(_search(branch, subject, folded, self.ignore_case) for branch in self.branches)


def _search(branch: Branch, subject: str, folded: str, ignore_case: bool) -> bool:
    if not all(literal in folded for literal in branch.literals):
        return False
    at = 0
    for piece in branch.pieces:
        found = _compiled(piece, ignore_case).search(subject, at)
        if found is None:
            return False
        at = found.end()
    return True


@lru_cache(maxsize=4096)
def _compiled(piece: str, ignore_case: bool) -> re.Pattern[str]:
    return re.compile(piece, re.ASCII | (re.IGNORECASE if ignore_case else 0))


def exact(text: str) -> Pattern:
    """Check and compile ``text``. Raises BadEntry with the reason when it is outside the subset."""
    return _compile(text, False)


def folded(text: str) -> Pattern:
    """The same, ignoring case."""
    return _compile(text, True)


# Positional and cached: a matcher asks for the same texts again and again.
@lru_cache(maxsize=65536)
def _compile(text: str, ignore_case: bool) -> Pattern:
    if not text or len(text) > MAX_PATTERN:
        raise BadEntry(f"a pattern must have 1 to {MAX_PATTERN} characters, not {len(text)}")
    scanner = _Scanner(text)
    branches = scanner.alternatives()
    if scanner.at != len(text):
        raise scanner.bad("an unmatched ')'")
    made = tuple(_branch(branch, text, ignore_case) for branch in branches)
    return Pattern(text, made, ignore_case)


def _branch(pieces: "list[_Piece]", text: str, ignore_case: bool) -> Branch:
    kept = [piece for piece in pieces if piece.regex]
    if not kept:
        raise BadEntry(f"the pattern {text!r} would match anything")
    literals = [literal for piece in kept for literal in piece.literals if len(literal) > 1]
    for piece in kept:
        try:
            re.compile(piece.regex, re.ASCII)
        except (re.error, OverflowError, RecursionError) as error:
            raise BadEntry(f"the pattern {text!r} is not a regular expression: {error}") from error
    folded = tuple(literal.lower() if ignore_case else literal for literal in literals)
    words = frozenset(word for literal in folded for word in _inner_words(literal))
    return Branch(folded, tuple(piece.regex for piece in kept), words)


def words_of(text: str) -> list[str]:
    """The words of a lower-case text as :attr:`Branch.words` counts them."""
    return re.findall(r"[a-z0-9_]+", text, re.ASCII)


def _inner_words(literal: str) -> list[str]:
    """Words of a literal that end inside it; one that touches its edge may go on in the text."""
    lower = literal.lower()
    start = len(lower) - len(lower.lstrip("abcdefghijklmnopqrstuvwxyz0123456789_"))
    end = len(lower.rstrip("abcdefghijklmnopqrstuvwxyz0123456789_"))
    return words_of(lower[start:end]) if start < end else []


class _Piece:
    """What stands between two gaps: rewritten regex, cost, and its literal runs."""

    def __init__(self) -> None:
        self.regex = ""
        self.cost = 1
        self.literals: list[str] = []
        self.run = ""

    def flush(self) -> None:
        if self.run:
            self.literals.append(self.run)
            self.run = ""


RULES = (
    "A pattern may hold characters, classes such as [a-z] and \\d, repeats of one of these, groups such as "
    "(a|b), ^, $ and, outside groups, '.*'; no repeated group, no backreference, no look-around."
)
"""What people are told whose pattern is refused."""


class _Scanner:
    """One pass over the pattern text, by recursive descent over groups (bounded depth)."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def bad(self, what: str) -> BadEntry:
        return BadEntry(
            f"the pattern {self.text!r} has {what} (at character {self.at})",
            hint=RULES,
        )

    def alternatives(self, depth: int = 0) -> list[list[_Piece]]:
        """Everything up to the end or an unmatched ``)``: alternatives of pieces."""
        if depth > _MAX_DEPTH:
            raise self.bad("too many nested groups")
        branches = [[_Piece()]]
        while self.at < len(self.text) and self.text[self.at] != ")":
            pieces = branches[-1]
            if self.text[self.at] == "|":
                self.at += 1
                pieces[-1].flush()
                branches.append([_Piece()])
            elif depth == 0 and self.text.startswith(".*", self.at):
                self.at += 2
                if self.text[self.at : self.at + 1] == "?":  # a gap has no greediness
                    self.at += 1
                pieces[-1].flush()
                pieces.append(_Piece())
            else:
                self._element(pieces[-1], depth)
            if pieces[-1].cost > MAX_COST:
                raise self.bad("repeats whose combinations are too many to try")
        branches[-1][-1].flush()
        return branches

    def _element(self, piece: _Piece, depth: int) -> None:
        atom, literal, cost = self._atom(depth)
        is_group = atom.startswith("(")
        quantifier, choices = self._quantifier(is_group, atom)
        piece.regex += atom + quantifier
        piece.cost *= cost * choices
        if literal is not None and not quantifier:
            piece.run += literal
        else:
            piece.flush()

    def _atom(self, depth: int) -> tuple[str, str | None, int]:
        """The regex of one atom, the character it stands for when literal, and its cost."""
        char = self.text[self.at]
        self.at += 1
        if char == "(":
            return self._group(depth)
        if char == "[":
            return self._class()
        if char == "\\":
            return self._escape()
        if char in "*+?{":
            raise self.bad("a repeat of nothing")
        if char in ".^$":
            return char, None, 1
        return (char if char not in _META else "\\" + char), char, 1

    def _escape(self) -> tuple[str, str | None, int]:
        char = self.text[self.at : self.at + 1]
        self.at += 1
        if char in _CLASS_ESCAPES or char in ("b", "B"):
            return "\\" + char, None, 1
        if not char or char.isalnum():
            raise self.bad("a backreference or unsupported escape")
        return re.escape(char), char, 1

    def _class(self) -> tuple[str, None, int]:
        found = re.compile(_CLASS_BODY).match(self.text, self.at)
        if found is None:
            raise self.bad("an unfinished or empty character class")
        self.at = found.end()
        parts = re.findall(_CLASS_PART, found[1], re.DOTALL)
        # re warns that it may read a doubled one as set arithmetic some day: what an entry means must not
        # depend on the Python that reads it, and its author hardly meant the same character twice.
        for part, following in pairwise(parts):
            if part == following and part in _SET_OPERATORS:
                raise self.bad(
                    f"{part * 2!r} in a character class (write it once, as \\{part} if it means itself)"
                )
        # For the same reason a bare "[" inside a class is escaped.
        inner = "".join("\\[" if part == "[" else part for part in parts)
        return f"[{inner}]", None, 1

    def _group(self, depth: int) -> tuple[str, None, int]:
        if self.text.startswith("?:", self.at):
            self.at += 2
        elif self.text.startswith("?", self.at):
            raise self.bad("a look-around, flag or named group")
        branches = self.alternatives(depth + 1)
        if self.text[self.at : self.at + 1] != ")":
            raise self.bad("an unfinished group")
        self.at += 1
        body = "|".join(branch[0].regex for branch in branches)
        return f"(?:{body})", None, sum(branch[0].cost for branch in branches)

    def _quantifier(self, is_group: bool, atom: str) -> tuple[str, int]:
        """The bounded quantifier that follows, and how many choices it gives the matcher."""
        found = re.compile(_QUANTIFIER, re.ASCII).match(self.text, self.at)
        if found is None:
            if self.text.startswith("{", self.at):
                raise self.bad("a '{' that is no repeat: write \\{")
            return "", 1
        self.at = found.end()
        mark = found[0]
        if self.text[self.at : self.at + 1] in ("?", "+", "*", "{"):
            raise self.bad("a doubled repeat")
        if mark == "?":
            return "?", 2
        if is_group or atom in ("^", "$", "\\b", "\\B"):
            raise self.bad("a repeated group or anchor")
        low, high = _bounds(mark)
        if high < low or high > 200:
            raise self.bad("a repeat of more than 200")
        return f"{{{low},{high}}}", high - low + 1


def _bounds(mark: str) -> tuple[int, int]:
    if mark in "*+":
        return (0 if mark == "*" else 1), REPEAT
    low, comma, high = mark[1:-1].partition(",")
    first = int(low or 0)
    if not comma:
        return first, first
    return first, int(high) if high else first + REPEAT
