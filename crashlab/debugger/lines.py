"""From pasted text to plain lines: undoes what terminals, mail and issue trackers add to a transcript.

Everything here is one pass over the text and bounded: at most :data:`MAX_CHARS` characters in
:data:`MAX_LINES` lines are looked at, and a line keeps its first :data:`MAX_LINE`.
"""

from __future__ import annotations

import re

MAX_CHARS = 16 << 20
"""What is read of one transcript. A real one is below 1 MiB, even with every register of a warp."""

MAX_LINES = 200_000
MAX_LINE = 64 << 10

_ESCAPES = re.compile(
    r"\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]|\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?|\x1b[@-_]?"
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_QUOTED = re.compile(r" {0,3}>(?: |$|(?=>))")
_FENCE = re.compile(r"\s{0,8}(?:`{3,}|~{3,})[\w+-]{0,32}\s*$")
_TAGS = re.compile(r"\s{0,8}</?(?:details|summary|pre|code|p|blockquote)>\s*$", re.IGNORECASE)
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#39;", "'"), ("&amp;", "&"))
_QUOTE_LEVELS = 5


def decode(raw: bytes | str) -> tuple[str, bool]:
    """The text to read and whether something was cut off its end. Undecodable bytes become U+FFFD."""
    cut = len(raw) > MAX_CHARS
    raw = raw[:MAX_CHARS]
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
    return text, cut or text.count("\n") + text.count("\r") > MAX_LINES


def plain_lines(text: str) -> list[str]:
    """Lines without colours, control characters, quote marks, code fences and HTML entities.

    Fences and tags become blank lines, since they end whatever stood before them. Leading blanks are
    kept: they tell a debugger's own wrapping from a terminal's.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    text = _CONTROLS.sub("", text)
    if "&lt;&lt;&lt;" in text:
        for entity, character in _ENTITIES:
            text = text.replace(entity, character)
    lines = [line[:MAX_LINE].rstrip() for line in text.split("\n", MAX_LINES)[:MAX_LINES]]
    for _ in range(_QUOTE_LEVELS):
        if not _strip_quotes(lines):
            break
    return ["" if _FENCE.match(line) or _TAGS.match(line) else _unticked(line) for line in lines]


def _strip_quotes(lines: list[str]) -> bool:
    """Remove one level of ``> `` in place; False when there was none.

    A wrapped C++ name can begin with ``>`` too, so a lone line counts as quoted only when what follows
    could begin a line of the debugger.
    """
    marks = [_QUOTED.match(line) for line in lines]
    found = False
    for i, mark in enumerate(marks):
        if mark is None:
            continue
        near = (i > 0 and marks[i - 1]) or (i + 1 < len(marks) and marks[i + 1])
        rest = lines[i][mark.end() :]
        if near or rest[:1] in tuple("[#=*$") or rest.startswith(("CUDA ", "The exc", "Opening ", "0x")):
            lines[i] = rest
            found = True
    return found


def _unticked(line: str) -> str:
    """Inline code: ```CUDA Exception: …``` between single back-ticks."""
    text = line.strip()
    return text[1:-1] if len(text) > 2 and text[0] == text[-1] == "`" else line
