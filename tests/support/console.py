"""Commands in the documentation: fenced ``console`` blocks, which are run, or say what they need.

A line that begins with ``$`` is a command (continued after a backslash); the lines below it are what it
prints: each must stand in the output, ``…`` for what is left out. A block whose first line is
``# needs …`` is not run. ``# exit code N`` at the end of a command is what it must exit with, else 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"\s+#\s+exit code (\d+)$")


class Command(NamedTuple):
    """``shown``: lines of output, as printed in the page. ``needs``: what keeps it from being run here."""

    text: str
    shown: tuple[str, ...]
    code: int
    needs: str | None
    line: int


def commands(page: str) -> Iterator[Command]:
    """Those of a page in their order."""
    for block in _BLOCK.finditer(page):
        first = page.count("\n", 0, block.start(1)) + 1
        lines = block.group(1).splitlines()
        needs = lines[0].removeprefix("# needs ") if lines and lines[0].startswith("# needs ") else None
        at = 0
        while at < len(lines):
            line = lines[at]
            at += 1
            if not line.startswith("$ "):
                continue
            number, text = first + at - 1, line[2:]
            while text.endswith("\\") and at < len(lines):
                text = text[:-1] + lines[at].strip()
                at += 1
            shown = []
            while at < len(lines) and not lines[at].startswith("$ "):
                shown.append(lines[at])
                at += 1
            code = _CODE.search(text)
            yield Command(_CODE.sub("", text), tuple(shown), int(code.group(1)) if code else 0, needs, number)


def unmarked(page: str) -> list[str]:
    """Commands of ours that stand in blocks which nobody runs: plain fences and indented lines."""
    rest = _BLOCK.sub("", page)
    plain = re.findall(r"^```\n(.*?)^```$", rest, re.MULTILINE | re.DOTALL)
    lines = [line for block in plain for line in block.splitlines()]
    lines += [line[4:] for line in rest.splitlines() if line.startswith("    ")]
    return [line for line in lines if line.lstrip("$ ").startswith("crashlab ")]


def missing(shown: tuple[str, ...], output: str) -> list[str]:
    """Pieces of the lines shown that are not in the output; blanks and line breaks do not matter."""
    flat = " ".join(output.split())
    pieces = [" ".join(piece.split()) for piece in re.split("…", " ".join(shown))]
    return [piece for piece in pieces if piece and piece not in flat]
