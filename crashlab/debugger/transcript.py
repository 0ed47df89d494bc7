"""What a cuda-gdb transcript says, as facts: cuda-gdb 11 to 13, whole or cut off, pasted or recorded.

``parse`` never fails on text: what it does not understand it leaves out. Each fact is taken from its
first appearance, because the first screen describes the fault and what follows is the user's (or our)
looking around. A second ``Opening GPU coredump`` ends the reading and is counted in ``more_dumps``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from crashlab.debugger import flags
from crashlab.debugger.lines import decode, plain_lines
from crashlab.debugger.reading import Reading
from crashlab.debugger.records import records
from crashlab.debugger.rows import (
    DeviceRow,
    Focus,
    Frame,
    KernelRow,
    LaneRow,
    Located,
    SassLine,
    SourceLine,
    WarpRow,
)
from crashlab.facts import Dim3, Hex


class Transcript(NamedTuple):
    """Facts of one transcript; everything may be absent.

    ``exception`` is the name as printed, ``exception_code`` the dump's code for it, or the number of
    an exception that the debugger did not know. ``errorpc`` is the faulting instruction; ``function``,
    ``source`` and ``errorpc_symbol`` (mangled where the debugger printed it so) belong to it.
    ``pc`` and ``pc_symbol`` are where the focused thread stands. ``flags`` are those of
    :mod:`crashlab.debugger.flags`.
    ``cluster_target`` is the block whose shared memory a cluster exception wanted.
    ``focus_first`` tells whether the focus stood before the exception, as from 12.9 on.
    """

    version: str | None = None
    dump: str | None = None
    exception: str | None = None
    exception_code: int | None = None
    device: int | None = None
    cluster_target: Dim3 | None = None
    errorpc: Hex | None = None
    function: str | None = None
    source: SourceLine | None = None
    errorpc_symbol: Located | None = None
    pc: Hex | None = None
    pc_symbol: Located | None = None
    focus: Focus | None = None
    focus_first: bool | None = None
    frames: tuple[Frame, ...] = ()
    kernels: tuple[KernelRow, ...] = ()
    devices: tuple[DeviceRow, ...] = ()
    warps: tuple[WarpRow, ...] = ()
    lanes: tuple[LaneRow, ...] = ()
    registers: Mapping[str, Hex] | None = None
    window: tuple[SassLine, ...] = ()
    flags: frozenset[str] = frozenset()
    abort_reason: str | None = None
    warnings: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    more_dumps: int = 0

    @property
    def aborted(self) -> bool:
        """True when the debugger died while it worked; what it printed before stays good evidence."""
        return flags.ABORTED in self.flags

    @property
    def says_anything(self) -> bool:
        """False for a text that holds nothing of cuda-gdb at all."""
        return self != Transcript(flags=self.flags & {flags.CUT})

    def instruction_at(self, pc: int | None) -> SassLine | None:
        """The disassembled line of a PC."""
        return next((line for line in self.window if line.pc == pc and line.text), None)


def parse(text: bytes | str) -> Transcript:
    """Read a transcript of any size and origin. Only the first 16 MiB count."""
    decoded, cut = decode(text)
    reading = Reading()
    if cut:
        reading.flags.add(flags.CUT)
    for record in records(plain_lines(decoded)):
        reading.take(record)
    return Transcript(**reading.facts())
