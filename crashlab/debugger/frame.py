"""A backtrace frame: ``#0  0x… in NAME<<<(g),(b)>>> (ARGS) at FILE:LINE``."""

from __future__ import annotations

import re

from crashlab.debugger.brackets import last_group
from crashlab.debugger.rows import Frame
from crashlab.facts import Dim3, Hex, InlineFrame

_HEAD = re.compile(r"\s*(?:#(\d{1,6})\s{1,8})?(?:(0x[0-9a-fA-F]{1,16}|<unavailable>)\s{1,8}in\s{1,8})?")
_LAUNCH = re.compile(
    r"<<<\s?\((\d{1,10}),\s?(\d{1,10}),\s?(\d{1,10})\)\s?,\s?\((\d{1,10}),\s?(\d{1,10}),\s?(\d{1,10})\)\s?>>>$"
)
_POSITION = re.compile(r"(\S.*):(\d{1,9})$")
_CLONE = " [clone "


def split_position(text: str) -> tuple[str, int] | None:
    """``faults.cu:27`` → its two halves."""
    match = _POSITION.match(text.strip())
    return (match[1], int(match[2])) if match else None


def split_inlined(text: str) -> tuple[str, InlineFrame | None]:
    """Cut ``in MANGLED inlined from FILE:LINE`` off the end; the frame's function is the inlined one."""
    head, mark, tail = text.rpartition(" inlined from ")
    position = split_position(tail) if mark else None
    if position is None:
        return text, None
    before, mark, function = head.rpartition(" in ")
    if not mark:
        return text, None
    return before.rstrip(), InlineFrame(position[0], position[1], function.strip() or None)


def parse_frame(text: str) -> Frame | None:
    """A frame with or without number and address; None when the line is nothing of the kind.

    ``#709 is the same`` begins like a frame, so one sign of a real one is asked for: an address, a
    launch, a source position or ``??``.
    """
    text = " ".join(text.split())
    head = _HEAD.match(text)
    if head is None:  # pragma: no cover - every part of the pattern is optional
        return None
    rest = text[head.end() :]
    if not rest:
        return None
    rest, inlined = split_inlined(rest)
    rest, position = _cut_position(rest)
    if inlined is None:
        rest, inlined = split_inlined(rest)
    rest, args = _cut_args(rest)
    rest, grid, block = _cut_launch(rest)
    name, clone_of = split_clone(rest)
    if head[2] is None and grid is None and position is None and name != "??":
        return None
    pc = Hex(int(head[2], 16)) if head[2] and head[2][0] == "0" else None
    return Frame(
        level=int(head[1]) if head[1] else None,
        pc=pc,
        function=None if name in ("", "??") else name,
        args=args or None,
        grid=grid,
        block=block,
        file=position[0] if position else None,
        line=position[1] if position else None,
        clone_of=clone_of,
        inlined=inlined,
    )


def split_clone(name: str) -> tuple[str, str | None]:
    """``inner(int) [clone kernel(int)]`` → function and the kernel it was cloned for."""
    at = name.find(_CLONE)
    if at < 0 or not name.endswith("]"):
        return name, None
    return name[:at], name[at + len(_CLONE) : -1] or None


def _cut_position(rest: str) -> tuple[str, tuple[str, int] | None]:
    for word in (" at ", " from "):
        before, mark, tail = rest.rpartition(word)
        if not mark or before.count("(") != before.count(")"):
            continue
        if word == " from ":
            return before.rstrip(), None
        position = split_position(tail)
        if position:
            return before.rstrip(), position
    return rest, None


def _cut_args(rest: str) -> tuple[str, str | None]:
    """The call's own arguments follow a blank; the parameters in a C++ name do not."""
    at = last_group(rest)
    if at is None or not (rest[at - 1 : at] == " " or rest[:at].endswith(">>>")):
        return rest, None
    return rest[:at].rstrip(), rest[at + 1 : -1].strip()


def _cut_launch(rest: str) -> tuple[str, Dim3 | None, Dim3 | None]:
    at = rest.rfind("<<<")
    match = _LAUNCH.match(rest, at) if at >= 0 else None
    if match is None:
        return rest, None, None
    n = [int(value) for value in match.groups()]
    return rest[:at].rstrip(), Dim3(*n[:3]), Dim3(*n[3:])
