"""Hostile text in Markdown: a word is either plainly harmless or shown as code, where nothing acts.

GitHub turns ``@name``, ``#12``, ``GH-12``, addresses, commit hashes and ``:emoji:`` into live things
after it has rendered the text, so that a backslash does not help; inside code none of them acts
(docs.github.com, "Autolinked references and URLs").
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from crashlab.report.safe import one_line

_TICKS = re.compile(r"`+")
_LIVE = re.compile(r"^(?:gh-\d|www\.)|^[0-9a-f]{7,40}$", re.IGNORECASE)
_HARMLESS = frozenset(".,;'\"()/%…–×=°→—+-")
_START = re.compile(r"^(?:[-+=]|\d{1,9}[.)])")
_TAIL = ",.;:!?)"


def code(text: str, limit: int = 500) -> str:
    """An inline code span that its content cannot end."""
    text = one_line(text, limit)
    if not text.strip():
        return "(empty)"
    fence = "`" * (_longest(text) + 1)
    pad = " " if text[0] in "` " or text[-1] in "` " else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def fenced(lines: Iterable[str], info: str = "text", limit: int = 500) -> str:
    """A code block that its content cannot end."""
    body = [one_line(line, limit) for line in lines]
    fence = "`" * max(3, _longest("\n".join(body)) + 1)
    return "\n".join((f"{fence}{info}", *body, fence))


def prose(text: str, limit: int = 1000) -> str:
    """A sentence whose every word that could act is shown as code."""
    words = one_line(text, limit).split(" ")
    out: list[str] = []
    held: list[str] = []
    between: list[str] = []
    for word in words:
        if not word:
            continue
        if not _harmless(word.rstrip(_TAIL)):
            held += [*between, word]
            between = []
        elif held and not between and word.endswith(","):
            between = [word]  # "kernel<128, 8, float>" stays one piece
        else:
            out += [*_released(held), *between, word]
            held, between = [], []
    out += [*_released(held), *between]
    sentence = " ".join(out)
    return f"\\{sentence}" if _START.match(sentence) and sentence[:1] in "-+=" else _not_a_list(sentence)


def _harmless(word: str) -> bool:
    if _LIVE.search(word.strip("(\"'")):
        return False
    return all(char.isalnum() or char in _HARMLESS for char in word)


def _released(held: list[str]) -> list[str]:
    """Neighbouring words as one code span; punctuation at its end stays outside."""
    if not held:
        return []
    text = " ".join(held)
    core = text.rstrip(",.;:!?")
    return [code(core, len(text)) + text[len(core) :] if core else code(text)]


def _not_a_list(sentence: str) -> str:
    """``1. x`` at the start of a paragraph would begin a list."""
    match = _START.match(sentence)
    return f"{sentence[: match.end() - 1]}\\{sentence[match.end() - 1 :]}" if match else sentence


def cell(markdown: str) -> str:
    """For a table: a bar ends the cell even inside code unless it is escaped (GitHub Flavored Markdown, "Tables")."""
    return markdown.replace("|", "\\|")


def bullets(items: Iterable[str]) -> str:
    """A list of sentences."""
    return "\n".join(f"- {prose(item)}" for item in items)


def _longest(text: str) -> int:
    return max((len(run) for run in _TICKS.findall(text)), default=0)
