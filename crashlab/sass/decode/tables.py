"""The table files: families of architectures, inheritance, and the lazy index of their blocks.

A file starts with comment lines (``#``), may say ``inherits FAMILY`` and ``drop OPCODE ...``, and then
has one block an opcode (or several that divide it), separated by empty lines. A block of a child
replaces all blocks of its opcode. Blocks are compiled when an instruction of theirs is first seen.
"""

from __future__ import annotations

import os

# family -> (parent, SM number of the samples, nvdisasm's name, number of the uniform register URZ).
# SM70 and SM72 are known to nvdisasm up to release 12.9.
FAMILIES: dict[str, tuple[str | None, int, str, int]] = {
    "sm_90": (None, 90, "SM90a", 63),
    "sm_80": ("sm_90", 80, "SM80", 63),
    "sm_75": ("sm_80", 75, "SM75", 63),
    "sm_70": ("sm_75", 70, "SM70", 63),
    "sm_72": ("sm_70", 72, "SM72", 63),
    "sm_86": ("sm_80", 86, "SM86", 63),
    "sm_87": ("sm_86", 87, "SM87", 63),
    "sm_88": ("sm_87", 88, "SM88", 63),
    "sm_89": ("sm_86", 89, "SM89", 63),
    "sm_100": ("sm_90", 100, "SM100a", 255),
    "sm_103": ("sm_100", 103, "SM103a", 255),
    "sm_107": ("sm_100", 107, "SM107a", 255),
    "sm_110": ("sm_100", 110, "SM110a", 255),
    "sm_101": ("sm_110", 101, "SM101a", 255),
    "sm_120": ("sm_100", 120, "SM120a", 255),
    "sm_121": ("sm_120", 121, "SM121a", 255),
}

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tables")


def own_texts(text: str) -> tuple[str | None, list[int], dict[int, list[str]]]:
    """Splits a table file: its parent, the opcodes it drops, and its own blocks by opcode."""
    head, *blocks = text.split("\n\n@ ")
    parent: str | None = None
    dropped: list[int] = []
    for line in head.split("\n"):
        word, _, rest = line.partition(" ")
        if word == "inherits":
            parent = rest
        elif word == "drop":
            dropped = [int(opcode, 16) for opcode in rest.split(" ")]
    own: dict[int, list[str]] = {}
    for block in blocks:
        own.setdefault(int(block[:3], 16), []).append("@ " + block)
    return parent, dropped, own


def block_texts(folder: str, family: str) -> dict[int, list[str]]:
    """Returns the text blocks of ``family`` by opcode, inheritance applied. Raises OSError."""
    with open(os.path.join(folder, f"{family}.txt"), encoding="utf-8") as file:
        parent, dropped, own = own_texts(file.read())
    found = {} if parent is None else block_texts(folder, parent)
    for opcode in dropped:
        found.pop(opcode, None)
    found.update(own)
    return found


def block_lines(block: str) -> list[str]:
    """Returns the lines of one block."""
    return block.rstrip("\n").split("\n")


def own_blocks(text: str) -> tuple[dict[int, list[list[str]]], list[int]]:
    """Returns the blocks that a table file has itself, by opcode, and the opcodes it drops."""
    _, dropped, own = own_texts(text)
    return {opcode: [block_lines(block) for block in blocks] for opcode, blocks in own.items()}, dropped


def load_blocks(folder: str | os.PathLike[str], family: str) -> dict[int, list[list[str]]]:
    """Returns the blocks of ``family`` as lines, by opcode, inheritance applied."""
    texts = block_texts(os.fspath(folder), family)
    return {opcode: [block_lines(block) for block in blocks] for opcode, blocks in texts.items()}
