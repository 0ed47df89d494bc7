"""Log lines prepared for pattern search: bounded, and joined so that literals are found at C speed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from crashlab.signatures.patterns import Branch, Pattern, words_of

MAX_LINE = 2000
MAX_TEXT = 4 << 20
"""Characters kept of a log: the first half and the last half; start-up and end tell the story."""
_MAX_TRIES = 200
_MAX_DISTINCT = 500_000


class LogText:
    """An immutable, searchable log. ``lines`` keeps each distinct line once, in order."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = _bounded(lines)
        self._folded = "\n" + "\n".join(self.lines).lower() + "\n"
        self._words: frozenset[str] | None = None

    def __bool__(self) -> bool:
        return bool(self.lines)

    def find(self, pattern: Pattern) -> str | None:
        """The first line, as it was written, in which a case-ignoring ``pattern`` occurs, of those tried."""
        if self._words is None:
            self._words = frozenset(words_of(self._folded))
        for branch in pattern.branches:
            if branch.words <= self._words and all(text in self._folded for text in branch.literals):
                found = self._find_branch(branch, pattern)
                if found is not None:
                    return found
        return None

    def _find_branch(self, branch: Branch, pattern: Pattern) -> str | None:
        literal = max(branch.literals, key=len, default="")
        for start, line in self._lines_with(literal):
            if pattern.search(line):
                return self.lines[self._folded.count("\n", 0, start) - 1]
        return None

    def lines_with(self, literal: str) -> Iterator[str]:
        """Lines (lower case) that hold the lower-case ``literal``, at most :data:`_MAX_TRIES`."""
        return (line for _, line in self._lines_with(literal))

    def _lines_with(self, literal: str) -> Iterator[tuple[int, str]]:
        at = self._folded.find(literal) if literal else -1
        for _ in range(_MAX_TRIES):
            if at < 0:
                return
            start = self._folded.rfind("\n", 0, at + 1) + 1
            end = self._folded.find("\n", at)
            yield start, self._folded[start:end]
            at = self._folded.find(literal, end)


def _bounded(lines: Iterable[str]) -> tuple[str, ...]:
    """Distinct lines, each at most :data:`MAX_LINE` long, at most :data:`MAX_TEXT` characters in all."""
    seen: set[int] = set()  # of hashes: keeping the lines themselves would keep a whole huge log
    head: list[str] = []
    tail: list[str] = []
    head_room = tail_room = MAX_TEXT // 2
    drop = 0
    for raw in lines:
        line = raw[:MAX_LINE].rstrip("\r\n").replace("\n", " ")
        mark = hash(line)
        if mark in seen or not line:
            continue
        if len(seen) < _MAX_DISTINCT:
            seen.add(mark)
        if head_room > 0:
            head.append(line)
            head_room -= len(line) + 1
            continue
        tail.append(line)
        tail_room -= len(line) + 1
        while tail_room < 0:
            tail_room += len(tail[drop]) + 1
            drop += 1
        if drop > 50_000:
            del tail[:drop]
            drop = 0
    return (*head, *tail[drop:])
