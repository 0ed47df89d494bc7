"""Who made an image and for which GPU: NVIDIA's ELF notes and the header's flags.

``.note.nv.tkinfo`` (type 2000) names the tool that wrote the final code, ``.note.nv.cuinfo`` (type
1000; ``.note.nv.cuver`` in earlier form) the toolkit. Both appeared with CUDA 13.0; images of older
tools have none, so that absence says nothing. The layouts were read off real images.
"""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

import struct
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from crashlab.cubin.elf import Elf
from crashlab.cubin.lineprogram import string_at

_TKINFO, _CUINFO = 2000, 1000
_OWNER = b"NVIDIA Corp\0"
_MAX_NOTE = 1 << 16

_ABI_SM_IN_BITS_8_TO_15 = 8
_ACCELERATED_7, _ACCELERATED_8 = 0x800, 0x8
"""EF_CUDA_ACCELERATORS_V1 and EF_CUDA_ACCELERATORS (LLVM, llvm/BinaryFormat/ELF.h): an ``sm_90a``.

ptxas 13.0 leaves the second one clear even for ``-arch sm_90a``, so a clear bit proves nothing.
"""


class Toolchain(NamedTuple):
    """What ``.note.nv.tkinfo`` says; a field that is empty there is None.

    ``tool`` is ptxas, nvlink or an internal assembler; ``version`` the full text, ``release`` the part
    that identifies it ("13.0, V13.0.88"); ``toolkit`` comes from ``.note.nv.cuinfo`` ("13.0").
    """

    tool: str | None = None
    version: str | None = None
    release: str | None = None
    build: str | None = None
    options: str | None = None
    toolkit: str | None = None


def notes(elf: Elf, name: str) -> Iterator[tuple[int, bytes]]:
    """Type and descriptor of every NVIDIA note in one section; stops where the section lies."""
    data = bytes((elf.named_data(name) or b"")[:_MAX_NOTE])
    at = 0
    while at + 12 <= len(data):
        owner_size, size, kind = struct.unpack_from("<III", data, at)
        start = at + 12 + (owner_size + 3 & ~3)
        if start + size > len(data):
            return
        if data[at + 12 : at + 12 + owner_size] == _OWNER:
            yield kind, data[start : start + size]
        at = start + (size + 3 & ~3)


def toolchain(elf: Elf) -> Toolchain | None:
    """The tool that made the image and the toolkit it belongs to; None when the image says neither."""
    toolkit = _toolkit(elf)
    for kind, text in notes(elf, ".note.nv.tkinfo"):
        if kind != _TKINFO or len(text) < 24:
            continue
        _, _, *offsets = struct.unpack_from("<6I", text)
        tool, version, build, options = (_text(text[24:], offset) for offset in offsets)
        release = version.partition("release ")[2] if version else ""
        return Toolchain(tool, version, release or version, build, options, toolkit)
    return Toolchain(toolkit=toolkit) if toolkit else None


def _text(strings: bytes, offset: int) -> str | None:
    found = string_at(strings, offset)
    return found.strip() or None if found else None


def _toolkit(elf: Elf) -> str | None:
    """Toolkit version: tenths in the second word of ``.note.nv.cuinfo`` (130 is 13.0)."""
    for kind, text in notes(elf, ".note.nv.cuinfo"):
        if kind == _CUINFO and len(text) >= 8:
            _, _, version = struct.unpack_from("<HHI", text)
            return f"{version // 10}.{version % 10}" if 80 <= version < 10_000 else None
    return None


def compiler(elf: Elf) -> str | None:
    """The tool as one line: ``ptxas 13.0, V13.0.88``; without a note, ``.debug_info``'s producer."""
    made_by = toolchain(elf)
    if made_by is not None and made_by.tool:
        return f"{made_by.tool} {made_by.release}" if made_by.release else made_by.tool
    if made_by is not None and made_by.toolkit:
        return f"CUDA {made_by.toolkit}"
    return producer(elf)


def producer(elf: Elf) -> str | None:
    """The front end's name, from ``.comment`` or the first string of ``.debug_info``.

    The compile unit of NVIDIA's DWARF 2 begins with DW_AT_producer as inline text ("lgenfe: EDG 6.6").
    """
    comment = bytes((elf.named_data(".comment") or b"")[:256]).strip(b"\0").partition(b"\0")[0]
    if not comment:
        unit = bytes((elf.named_data(".debug_info") or b"")[:256])
        if len(unit) < 13 or not 2 <= int.from_bytes(unit[4:6], "little") <= 4 or unit[11] != 1:
            return None
        comment = unit[12:].partition(b"\0")[0]
    text = comment.decode("ascii", "replace")
    return text if len(text) >= 3 and text.isprintable() and text.isascii() else None


def sm(elf: Elf) -> int | None:
    """The SM version that the header's flags name (90 for sm_90); None when they name none.

    Up to ABI 7 it is the low byte, from ABI 8 (CUDA 13) on bits 8 to 15. ``.note.nv.cuinfo`` is no
    substitute: it holds the *virtual* architecture (50 in an sm_90 image of cuDNN).
    """
    found = elf.flags >> 8 & 0xFF if elf.abi >= _ABI_SM_IN_BITS_8_TO_15 else elf.flags & 0xFF
    return found if found >= 10 else None


def architecture(elf: Elf) -> str | None:
    """``sm_90``, ``sm_90a`` or ``sm_100f`` as far as the image tells; None when it does not.

    The suffix comes from the tool's ``-arch`` option when that names the same SM, else from the flags.
    """
    number = sm(elf)
    if number is None:
        return None
    made_by = toolchain(elf)
    words = (made_by.options or "").replace("=", " ").split() if made_by is not None else []
    for option, value in pairwise(words):
        if option in ("-arch", "--gpu-name") and value[:-1] == f"sm_{number}" and value[-1] in "af":
            return value
    accelerated = _ACCELERATED_8 if elf.abi >= _ABI_SM_IN_BITS_8_TO_15 else _ACCELERATED_7
    return f"sm_{number}a" if elf.flags & accelerated else f"sm_{number}"
