"""Cells under each other: as a table where the screen is wide enough for one, else row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

GAP = "  "
_NARROWEST = 16
"""Columns of words are not made narrower than this."""
_SIGNS = (" =,|", "_-/")
_SCREEN = 80
"""From here on a table that is still too wide stays one: what a terminal folds can be scanned, and a
hundred rows as a list each could not."""


class Columns(NamedTuple):
    """``rows`` of cells below ``heads``. ``right`` says which columns hold numbers, ``words`` which ones hold
    words, whose cells may be continued on further lines. ``indent`` stands before every line."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[bool]
    words: Sequence[bool]
    indent: str = ""

    def lines(self, width: int | None = None) -> Iterator[str]:
        """A table as narrow as ``width`` if it can be; else on a narrow screen ``head  cell`` lines of each row."""
        cells = [self.heads, *self.rows]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.heads))]
        if width is not None:
            room = width - len(self.indent) - len(GAP) * (len(widths) - 1)
            widths = _narrowed(widths, self.words, room)
            if sum(widths) > room and width < _SCREEN:
                yield from self._records(width)
                return
        for row in cells:
            yield from self._line(row, widths)

    def _line(self, row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
        """One row; a cell that is longer than its column goes on below."""
        pieces = [broken(text, room) for text, room in zip(row, widths, strict=True)]
        for line in range(max(map(len, pieces))):
            shown = [piece[line] if line < len(piece) else "" for piece in pieces]
            parts = [
                text.rjust(room) if to_right else text.ljust(room)
                for text, room, to_right in zip(shown, widths, self.right, strict=True)
            ]
            yield f"{self.indent}{GAP.join(parts)}".rstrip()

    def _records(self, width: int) -> Iterator[str]:
        label = max(map(len, self.heads))
        room = max(_NARROWEST, width - len(self.indent) - label - len(GAP))
        for number, row in enumerate(self.rows):
            if number:
                yield ""
            for head, text in zip(self.heads, row, strict=True):
                for line, piece in enumerate(broken(text, room)):
                    yield f"{self.indent}{'' if line else head:<{label}}{GAP}{piece}".rstrip()


def broken(text: str, room: int) -> list[str]:
    """Pieces of at most ``room`` characters, broken at blanks, a longer word behind a sign in it."""
    out = []
    while len(text) > room:
        at = _break(text, room)
        out.append(text[:at].rstrip())
        text = text[at:].lstrip()
    return [*out, text] if text or not out else out


def _break(text: str, room: int) -> int:
    at = text.rfind(" ", 0, room + 1)
    if at > room // 2 or (at > 0 and len(text[at + 1 :].split(" ", 1)[0]) <= room):
        return at
    return in_word(text, room)


def in_word(text: str, room: int) -> int:
    """Where a text is broken that has no blank to be broken at: behind a sign that joins, else where the room ends."""
    for signs in _SIGNS:
        at = max(text.rfind(sign, 0, room) for sign in signs) + 1
        ends = (found for sign in (*signs, " ") if (found := text.find(sign, at)) >= 0)
        following = min(ends, default=len(text)) + 1
        if at > room // 2 or (at > 0 and following - at <= room):
            return at
    return room


def _narrowed(widths: Sequence[int], words: Sequence[bool], room: int) -> list[int]:
    """The widths with the widest columns of words made narrower, until a line fits or nothing more can give."""
    out = list(widths)
    over = sum(out) - room
    while over > 0:
        at = max((i for i, is_words in enumerate(words) if is_words), key=lambda i: out[i], default=None)
        if at is None or out[at] <= _NARROWEST:
            break
        second = max((w for i, w in enumerate(out) if words[i] and i != at and w < out[at]), default=0)
        step = max(1, min(over, out[at] - max(_NARROWEST, second)))
        out[at] -= step
        over -= step
    return out
