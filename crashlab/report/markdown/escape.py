"""Hostile text in Markdown: a word is either plainly harmless or shown as code, where nothing acts.

GitHub turns ``@name``, ``#12``, ``GH-12``, addresses, commit hashes and ``:emoji:`` into live things
after it has rendered the text, so that a backslash does not help; inside code none of them acts
(docs.github.com, "Autolinked references and URLs").
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from crashlab.report.safe import one_line

_TICKS = re.compile(r"`+")
_LIVE = re.compile(r"^(?:gh-\d|www\.)|^[0-9a-f]{7,40}$", re.IGNORECASE)
_HARMLESS = frozenset(".,;'\"()/%…–×=°→—+-")
_START = re.compile(r"^(?:[-+=]|\d{1,9}[.)])")
_TAIL = ",.;:!?)"
_AROUND = ",.;:!?…'\""
_SIGNS = frozenset((">=", "<=", "=="))
_ARGUMENTS = 40
_OPTION = re.compile(r"\(?--[a-z]")
_OPERAND = (
    r"[-!~|+]{0,3}(?:U?[RP](?:\d{1,3}|[ZT])(?:\.\w{1,12}){0,3}\|?"  # a register or predicate
    r"|[a-z]{0,6}(?:\[[^\]\[`]{0,60}\]){1,3}(?:\.\w{1,12}){0,3}"  # memory, a constant
    r"|0x[0-9a-f]{1,16}|\d{1,9}(?:\.\d{1,20})?|SR_[\w.]{1,30}|(?:B|gsb|SB)\d{1,2})"
)
_INSTRUCTION = (
    r"(?<![^\s(])"
    r"(?:@!?U?P\w{1,2} [A-Z][A-Z0-9]{1,15}(?:\.\w{1,24}){0,8} "
    r"|[A-Z][A-Z0-9]{1,15}(?:\.[A-Z0-9]\w{0,23}){1,8} "
    r"|[A-Z][A-Z0-9]{1,15} (?=(?:[^ ]{1,60} ){0,3}[-!~|]{0,2}(?:U?[RP](?:\d|Z|T)|\[|desc|c\[)))"
    rf"{_OPERAND}(?:, {_OPERAND}| 0x[0-9a-f]{{1,16}}){{0,8}}(?=[\s.,;:!?)]|$)"
)
_COMMAND = r"(?<![^\s(])'crashlab [^'`]{1,120}'(?=[\s.,;:!?)]|$)"
_CODE = re.compile(rf"`+|{_COMMAND}|{_INSTRUCTION}")
"""Backticks; one of our own commands in quotes; an instruction as nvdisasm writes it: ``@!P0 STS.128 [R0], R4``."""


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
    """A sentence whose every word that could act is shown as code.

    What stands between backticks already is one code span, and so is an instruction with its operands.
    """
    words = list(_words(one_line(text, limit)))
    raws = ["".join(part.raw for part in word) for word in words]
    out: list[str] = []
    held: list[str] = []
    kept = 0  # words up to here are held, whatever they are
    for number, (word, raw) in enumerate(zip(words, raws, strict=True)):
        shown = _shown(word, first=number == 0)
        value = bool(held) and "=" in raw and _OPTION.match(held[-1]) is not None  # --env cudnn=9.1
        if shown is None or number < kept or value:
            held.append(raw)
            kept = max(kept, number + 1 if number < kept else _closed(raws, number))
        else:
            out += [*_released(held), shown]
            held = []
    sentence = " ".join([*out, *_released(held)])
    return f"\\{sentence}" if _START.match(sentence) and sentence[:1] in "-+=" else _not_a_list(sentence)


def _closed(raws: Sequence[str], at: int) -> int:
    """Behind the word that closes the brackets which the word opens: ``kernel<128, 8, float>`` is one name."""
    depth = 0
    for number in range(at, min(at + _ARGUMENTS, len(raws))):
        text = (raws[number].lstrip("(\"'") if number == at else raws[number]).replace("->", "")
        depth += sum(map(text.count, "(<[")) - sum(map(text.count, ")>]"))
        if depth <= 0 or raws[number].endswith("…"):  # a name that was cut has no end
            return number + 1
    return at + 1


class _Part(NamedTuple):
    """Of a word: ``raw`` as it stood there, and what is inside where it is code."""

    raw: str
    inside: str | None = None


def _words(text: str) -> Iterator[list[_Part]]:
    """Words between blanks; a blank inside of code ends none."""
    word: list[_Part] = []
    for part in _parts(text):
        if part.inside is not None:
            word.append(part)
            continue
        first, *more = part.raw.split(" ")
        if first:
            word.append(_Part(first))
        for piece in more:
            if word:
                yield word
            word = [_Part(piece)] if piece else []
    if word:
        yield word


def _parts(text: str) -> Iterator[_Part]:
    """Text and code by turns: spans as CommonMark pairs their backticks, and instructions."""
    ends: dict[int, list[int]] = {}
    for run in _TICKS.finditer(text):
        ends.setdefault(run.end() - run.start(), []).append(run.start())
    at = done = 0
    while (found := _CODE.search(text, at)) is not None:
        at, inside = found.end(), found.group()
        if inside[0] == "'":
            inside = inside[1:-1]
        elif inside[0] == "`":
            ticks = len(inside)
            starts = ends[ticks]
            close = bisect_left(starts, at)
            if close == len(starts):
                continue
            inside = text[at : starts[close]]
            at = starts[close] + ticks
            inside = inside[1:-1] if inside[:1] == inside[-1:] == " " else inside
            if not inside.strip():
                continue
        yield _Part(text[done : found.start()])
        yield _Part(text[found.start() : at], inside)
        done = at
    yield _Part(text[done:])


def _shown(word: Sequence[_Part], *, first: bool) -> str | None:
    """The word in Markdown; None if something in it could act."""
    if len(word) == 1 and word[0].raw in _SIGNS and not first:
        return word[0].raw
    out: list[str] = []
    for number, part in enumerate(word, 1):
        if part.inside is not None:
            if out and word[number - 2].inside is not None:
                return None  # two spans side by side would be read as one
            out.append(code(part.inside, len(part.inside)))
            continue
        plain = part.raw.rstrip(_TAIL) if number == len(word) else part.raw
        if not _harmless(plain):
            return None
        out.append(part.raw)
    return "".join(out)


def _harmless(word: str) -> bool:
    if _LIVE.search(word.strip("(\"'")):
        return False
    if _OPTION.match(word) or word == "(anonymous":  # ``(anonymous namespace)::`` is part of a C++ name
        return False
    return all(char.isalnum() or char in _HARMLESS for char in word)


def _released(held: list[str]) -> list[str]:
    """Neighbouring words as one code span; punctuation and brackets around them stay outside."""
    if not held:
        return []
    text = " ".join(held)
    start, end = _core(text)
    if start >= end:
        return [code(text, len(text))]
    return [text[:start] + code(text[start:end], end - start) + text[end:]]


def _core(text: str) -> tuple[int, int]:
    """Where the text begins and ends without its punctuation. ``f(int)`` keeps its brackets, ``(f.cu:16)`` not."""
    start, end = 0, len(text)
    surplus = text.count(")") - text.count("(")
    while start < end:
        if text[end - 1] in _AROUND:
            end -= 1
        elif text[start] in "\"'":
            start += 1
        elif text[end - 1] == ")" and surplus > 0:
            end, surplus = end - 1, surplus - 1
        elif text[start] == "(" and surplus < 0:
            start, surplus = start + 1, surplus + 1
        elif text[start] == "(" and text[end - 1] == ")" and ")" not in text[start : end - 1]:
            start, end = start + 1, end - 1
        else:
            break
    return start, end


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
