"""The control fields of an instruction word (bits 105 to 125): scheduling, barriers, operand reuse."""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

from typing import NamedTuple

# What an instruction prints does not depend on these bits: stall, yield, barriers, wait mask, and the
# two highest bits.
CONTROL_MASK = ((1 << 17) - 1) << 105 | 3 << 126
# Values of (yield, stall) that nvdisasm rejects with every instruction.
_ILLEGAL_SCHEDULE = frozenset({0x10, 0x1F})


class Control(NamedTuple):
    """Scheduling of one instruction. Barriers are numbers 0 to 5, or None where none is used.

    ``stall`` is in cycles; ``wait_mask`` has bit *n* set where the instruction waits for barrier *n*;
    ``reuse`` has bit *n* set where operand *n* is kept in the reuse cache. ``yields`` is the scheduler
    hint, stored inverted in the word.
    """

    stall: int
    yields: bool
    write_barrier: int | None
    read_barrier: int | None
    wait_mask: int
    reuse: int


def control_of(word: int) -> Control:
    """Returns the control fields of a 128-bit instruction word."""
    write, read = word >> 110 & 7, word >> 113 & 7
    return Control(
        stall=word >> 105 & 15,
        yields=not word >> 109 & 1,
        write_barrier=None if write == 7 else write,
        read_barrier=None if read == 7 else read,
        wait_mask=word >> 116 & 0x3F,
        reuse=word >> 122 & 0xF,
    )


def legal_schedule(word: int) -> bool:
    """Says whether nvdisasm accepts the scheduling bits of the word at all."""
    return word >> 105 & 0x1F not in _ILLEGAL_SCHEDULE
