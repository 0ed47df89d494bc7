"""What whole answers look like: the soak's detectors, and those that need the question beside the answer.

A detector says what a text looks like. Whether that means anything, the other arm must tell: a small
model loops by itself.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from crashlab.quality.writing import scripts
from crashlab.soak.garbage import CONTROL, EMPTY, FEW_WORDS, LOOP, ONE_TOKEN, look_at

TOKEN0 = "token-0"
INVISIBLE = "invisible-tokens"
MOJIBAKE = "mojibake"
OTHER_SCRIPT = "other-script"
MIXED_SCRIPTS = "mixed-scripts"
KINDS = (TOKEN0, INVISIBLE, ONE_TOKEN, LOOP, FEW_WORDS, EMPTY, CONTROL, MOJIBAKE, OTHER_SCRIPT, MIXED_SCRIPTS)
MEANING = {
    TOKEN0: "token id 0 and nothing else, as after NaN logits",
    INVISIBLE: "tokens without any text: special ones, as token id 0 may be",
    ONE_TOKEN: "one token repeated",
    LOOP: "one phrase repeated",
    FEW_WORDS: "hardly any different words",
    EMPTY: "no text",
    CONTROL: "control characters",
    MOJIBAKE: "broken characters",
    OTHER_SCRIPT: "another writing system than the question",
    MIXED_SCRIPTS: "many writing systems at once",
}
# UTF-8 that was read as Latin-1 or Windows-1252.
_DOUBLE = re.compile("[\u00c2\u00c3][\u0080-\u00bf]|\u00e2\u20ac[\u0080-\u2122]")
_MIN_LETTERS = 12
_TAIL = 4096
_COLLAPSED = 6


class Example(NamedTuple):
    """A question and the degenerate answer to it, shortened."""

    task: str
    kinds: tuple[str, ...]
    answer: str


def kinds_of(
    text: str, tokens: int, *, question: str = "", finish: str | None = None, token0: str = "!"
) -> tuple[str, ...]:
    """What an answer looks like, in the order of :data:`KINDS`. ``token0`` is the text of token id 0.

    An empty answer that the model ended itself at once is no finding here: it is an invalid answer.
    """
    look = look_at(text, tokens)
    found = set(look.kinds)
    if EMPTY in found and finish == "stop" and tokens <= 2:
        found.discard(EMPTY)
    if _only_token0(text, token0):
        found.add(TOKEN0)
        found -= {ONE_TOKEN, LOOP}
    if not text and tokens >= _COLLAPSED:
        found.add(INVISIBLE)
        found.discard(EMPTY)
    tail = text[-_TAIL:]
    if tail and (tail.count("\ufffd") + 2 * len(_DOUBLE.findall(tail))) > 0.1 * len(tail):
        found.add(MOJIBAKE)
    found |= _writing(tail, question)
    return tuple(kind for kind in KINDS if kind in found)


def _only_token0(text: str, token0: str) -> bool:
    bare, unit = text.strip(), token0.strip()
    if not unit or len(bare) < _COLLAPSED * len(unit):
        return False
    return not bare.replace(unit, "").strip()


def _writing(tail: str, question: str) -> set[str]:
    said = scripts(tail)
    letters = sum(said.values())
    if letters < _MIN_LETTERS:
        return set()
    found = set()
    if len([name for name, count in said.items() if count >= 0.05 * letters]) >= 4:
        found.add(MIXED_SCRIPTS)
    asked = scripts(question[-_TAIL:])
    if sum(asked.values()) >= _MIN_LETTERS:
        main = asked.most_common(1)[0][0]
        if said[main] < 0.3 * letters and asked[main] > 0.8 * sum(asked.values()):
            found.add(OTHER_SCRIPT)
    return found


def garbage_kinds(kinds: tuple[str, ...]) -> tuple[str, ...]:
    """The words that the signature catalogue uses for them."""
    return tuple(dict.fromkeys(word for kind in kinds for word in _CATALOGUE[kind]))


_CATALOGUE = {
    TOKEN0: ("token0",),
    # NaN logits give token id 0; where that is a special token, nothing of it is seen.
    INVISIBLE: ("empty", "token0"),
    ONE_TOKEN: ("repetition",),
    LOOP: ("repetition",),
    FEW_WORDS: ("repetition",),
    EMPTY: ("empty",),
    CONTROL: ("noise",),
    MOJIBAKE: ("noise",),
    OTHER_SCRIPT: ("noise",),
    MIXED_SCRIPTS: ("noise",),
}
