"""TMA instructions: the descriptor they were given, decoded where it lies in the kernel's parameters.

The 128 bytes of a ``CUtensorMap`` are opaque by NVIDIA's documentation. What is said of one here is
only what its bytes show: the address it was taken from and whether its content can be a descriptor
at all (all zero, one repeated byte, a global address that is none).
"""

from __future__ import annotations

from typing import NamedTuple

from crashlab.facts import Hex
from crashlab.gpucore.dump import CoreDump
from crashlab.gpucore.rows import GridRow
from crashlab.postmortem.codemap import CodeMap

SIZE = 128
_ALIGNMENT = 64


class Descriptor(NamedTuple):
    """A tensor map: where it lies and what its bytes show. ``data`` is None when it was not dumped."""

    address: Hex
    data: bytes | None
    source: str
    problem: str | None

    @property
    def tensor(self) -> Hex | None:
        """The tensor's global address, where encodings made by driver 580 keep it: the first 8 bytes."""
        if self.data is None or self.problem is not None:
            return None
        value = int.from_bytes(self.data[:8], "little")
        return Hex(value) if 1 << 32 <= value < 1 << 49 else None


def descriptor_at(dump: CoreDump, codemap: CodeMap, grid: GridRow | None, address: int) -> Descriptor:
    """The descriptor at a generic address: in the launch's parameter bank or in dumped memory."""
    data, source = _from_parameters(dump, codemap, grid, address), "the kernel's parameters"
    if data is None:
        data, source = dump.read_memory(address, SIZE), "dumped memory"
    if data is None:
        source = "memory that is not in the dump"
    return Descriptor(Hex(address), data, source, _problem(address, data))


def _from_parameters(dump: CoreDump, codemap: CodeMap, grid: GridRow | None, address: int) -> bytes | None:
    """Parameters live in constant bank 0 behind ``params_offset``; the dump keeps them without the bank."""
    if grid is None or grid.params_offset is None:
        return None
    raw = dump.parameters(grid)
    if raw is None:
        return None
    for bank in dump.constant_banks(grid) or ():
        start = address - bank.address - grid.params_offset
        if bank.bank_id == 0 and 0 <= start <= len(raw) - SIZE:
            return bytes(raw[start : start + SIZE])
    return None


def _problem(address: int, data: bytes | None) -> str | None:
    if address % _ALIGNMENT:
        return f"the descriptor's address is {address % _ALIGNMENT} modulo {_ALIGNMENT}: it must be 64-byte aligned"
    if data is None:
        return None
    if not any(data):
        return "all its 128 bytes are zero: it was never encoded"
    repeated = {data[i] for i in range(16, SIZE)}
    if len(set(data)) == 1 or (len(repeated) == 1 and any(repeated)):
        return (
            f"its bytes repeat 0x{data[-1]:02x}: overwritten or uninitialised memory, no encoded descriptor"
        )
    return None
