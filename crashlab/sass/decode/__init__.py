"""SASS read without any NVIDIA program: 128-bit instruction words to text in nvdisasm's spelling.

What a word means comes from tables learned from nvdisasm (``crashlab/sass/tables``, written by
``scripts/sass/derive_tables.py``). A word with a field value that was never proven is unknown; it is
never shown as something else.
"""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

from typing import NamedTuple

from crashlab.errors import CrashlabError
from crashlab.sass.decode.control import Control, control_of
from crashlab.sass.decode.decoder import Decoder, family_of, load_decoder

__all__ = ["Control", "DecodedInstruction", "decode", "decode_range", "is_known_arch"]

_WORD_BITS = 128


class DecodedInstruction(NamedTuple):
    """One instruction: its text as nvdisasm prints it (without ``;``) and its control fields.

    Where ``known`` is false, ``text`` shows the raw words and ``opcode`` is None.
    """

    pc: int
    text: str
    opcode: str | None
    known: bool
    control: Control


def raw_text(word: int) -> str:
    """Returns how an unknown instruction is shown: its two 64-bit words, low one first."""
    return f"unknown 0x{word & (1 << 64) - 1:016x} 0x{word >> 64:016x}"


def mnemonic(text: str) -> str:
    """Returns ``LDG`` of ``@P0 LDG.E R2, [R4]``."""
    words = text.split(" ", 2)
    name = words[1] if text.startswith("@") and len(words) > 1 else words[0]
    return name.partition(".")[0]


def _decoder_of(arch: str) -> Decoder | None:
    family = family_of(arch)
    return None if family is None else load_decoder(family)


def is_known_arch(arch: str) -> bool:
    """Says whether tables exist for ``arch`` (``sm_90a``, ``SM120``). Never raises."""
    try:
        return family_of(arch) is not None
    except CrashlabError:
        return False


def decode(word: int | bytes, pc: int, arch: str) -> DecodedInstruction:
    """Decodes one instruction.

    ``word`` is the 128-bit number or its 16 bytes as in memory; ``pc`` its address, which branch targets
    are relative to. On an architecture newer than the tables every instruction is unknown.

    Raises:
        CrashlabError: ``arch`` is none, or older than sm_70; ``word`` is no 128-bit word.
    """
    if isinstance(word, bytes):
        if len(word) != _WORD_BITS // 8:
            raise CrashlabError(
                f"an instruction has 16 bytes, not {len(word)}", hint="cut the code at 16 bytes"
            )
        word = int.from_bytes(word, "little")
    if word < 0 or word >> _WORD_BITS:
        raise CrashlabError("an instruction is a 128-bit number", hint="pass the 16 bytes instead")
    chosen = _decoder_of(arch)
    text = None if chosen is None else chosen.text(word, pc)
    if text is None:
        return DecodedInstruction(pc, raw_text(word), None, False, control_of(word))
    return DecodedInstruction(pc, text, mnemonic(text), True, control_of(word))


def decode_range(code: bytes, base: int, arch: str) -> tuple[tuple[int, str | None], ...]:
    """Decodes code that lies at ``base``: (pc, text) an instruction, text None where it is not known.

    A rest of fewer than 16 bytes is left out.

    Raises:
        CrashlabError: ``arch`` is none, or older than sm_70.
    """
    chosen = _decoder_of(arch)
    if chosen is None:
        return tuple((base + at, None) for at in range(0, len(code) // 16 * 16, 16))
    return tuple(chosen.lines(code, base))
