"""The decoder of one architecture: finds the class of a word, and remembers texts."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from functools import cache

from crashlab.errors import CrashlabError
from crashlab.sass.decode.control import CONTROL_MASK, legal_schedule
from crashlab.sass.decode.model import ClassModel
from crashlab.sass.decode.tables import FAMILIES, FOLDER, block_lines, block_texts

_ARCH = re.compile(r"(?:sm_?|compute_)?(\d{2,3})[af]?", re.IGNORECASE)
_WORD_MASK = (1 << 128) - 1
_LOW_MASK = (1 << 64) - 1
_TEXT_MASK = _WORD_MASK & ~CONTROL_MASK
_MEMO_LIMIT = 1 << 18
_PAIR = struct.Struct("<QQ")


class Decoder:
    """Decodes the words of one architecture. Classes are compiled from their table on first use."""

    def __init__(self, texts: dict[int, list[str]]) -> None:
        self._texts = texts
        self._classes: dict[int, list[ClassModel]] = {}
        self._memo: dict[int, str | ClassModel | None] = {}

    def model(self, word: int) -> ClassModel | None:
        """Returns the class of a word, or None where the tables have none."""
        opcode = word & 0xFFF
        models = self._classes.get(opcode)
        if models is None:
            blocks = self._texts.get(opcode, ())
            models = self._classes[opcode] = [ClassModel(block_lines(block)) for block in blocks]
        for model in models:
            if word & model.when_mask == model.when_value:
                return model
        return None

    def text(self, word: int, pc: int) -> str | None:
        """Returns the text of a 128-bit word at ``pc``, guard included; None: not known."""
        if not legal_schedule(word):
            return None
        key = word & _TEXT_MASK
        try:
            known = self._memo[key]
        except KeyError:
            known = self._remember(key)
        return known if known is None or isinstance(known, str) else known.guarded_text(word, pc)

    def _remember(self, key: int) -> str | ClassModel | None:
        if len(self._memo) >= _MEMO_LIMIT:
            self._memo.clear()
        model = self.model(key)
        known: str | ClassModel | None = model
        if model is not None and not model.relative:
            known = model.guarded_text(key, 0)
        self._memo[key] = known
        return known

    def lines(self, code: bytes, base: int) -> Iterator[tuple[int, str | None]]:
        """Yields (pc, text or None) for every whole 16-byte instruction of ``code``."""
        pc = base
        end = len(code) // 16 * 16
        for low, high in _PAIR.iter_unpack(memoryview(code)[:end]):
            yield pc, self.text(high << 64 | low, pc)
            pc += 16


def family_of(arch: str) -> str | None:
    """Returns the table family of ``sm_90a``, ``SM100``, ...; None: newer than the tables know.

    Raises:
        CrashlabError: no architecture, or one whose encoding is not of this kind.
    """
    match = _ARCH.fullmatch(arch.strip())
    if match is None:
        raise CrashlabError(f"{arch!r} names no GPU architecture", hint="write it like sm_90 or sm_120a")
    number = int(match.group(1))
    family = f"sm_{number}"
    if family in FAMILIES:
        return family
    if number < 70:
        raise CrashlabError(
            f"{family} is older than the decoder's tables",
            hint="use an nvdisasm of that time: the tables begin with sm_70",
        )
    return None


@cache
def load_decoder(family: str) -> Decoder:
    """Returns the decoder of a family of :data:`FAMILIES`; its table is read once.

    Raises:
        CrashlabError: the table file is missing from the installation.
    """
    try:
        return Decoder(block_texts(FOLDER, family))
    except OSError as problem:
        raise CrashlabError(
            f"no instruction table of {family}: {problem.strerror}", hint="reinstall crashlab"
        ) from problem
