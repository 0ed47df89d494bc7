"""Write artificial GPU core dumps of any driver generation, for tests.

The layout comes from the same public header as the reader's, but this module keeps its own table of
strides by release and packs rows by hand, so that a mistake in one is not repeated in the other.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

SECTION_BASE = 0x80000000

STRIDES: dict[str, tuple[tuple[int, int], ...]] = {
    # (first release that writes this stride, bytes)
    "device": ((346, 72), (400, 80), (575, 88)),
    "context": ((346, 40),),
    "module": ((346, 8),),
    "grid": ((346, 104), (525, 120), (565, 136)),
    "sm": ((346, 8), (555, 24), (565, 40), (580, 48)),
    "cta": ((346, 24), (525, 40), (565, 56)),
    "warp": ((346, 32), (525, 40), (570, 48), (575, 64), (590, 80)),
    "lane": ((346, 48), (575, 56), (615, 64)),
    "backtrace": ((346, 24),),
    "meta": ((565, 32),),
    "constbank": ((550, 16),),
}

OFFSETS: dict[str, dict[str, tuple[int, str]]] = {
    "device": {
        "devName": (0, "Q"), "devType": (8, "Q"), "smType": (16, "Q"), "devId": (24, "I"), "pciBusId": (28, "I"),
        "pciDevId": (32, "I"), "numSMs": (36, "I"), "numWarpsPerSM": (40, "I"), "numLanesPerWarp": (44, "I"),
        "numRegsPerLane": (48, "I"), "numPredicates": (52, "I"), "smMajor": (56, "I"), "smMinor": (60, "I"),
        "instructionSize": (64, "I"), "status": (68, "I"), "numUniformRegs": (72, "I"),
        "numUniformPredicates": (76, "I"), "numConvergenceBarriers": (80, "I"),
    },
    "context": {
        "contextId": (0, "Q"), "sharedWindowBase": (8, "Q"), "localWindowBase": (16, "Q"),
        "globalWindowBase": (24, "Q"), "deviceIdx": (32, "I"), "tid": (36, "I"),
    },
    "module": {"moduleHandle": (0, "Q")},
    "grid": {
        "gridId64": (0, "Q"), "contextId": (8, "Q"), "function": (16, "Q"), "functionEntry": (24, "Q"),
        "moduleHandle": (32, "Q"), "parentGridId64": (40, "Q"), "paramsOffset": (48, "Q"), "kernelType": (56, "I"),
        "origin": (60, "I"), "status": (64, "I"), "numRegs": (68, "I"), "gridDimX": (72, "I"), "gridDimY": (76, "I"),
        "gridDimZ": (80, "I"), "blockDimX": (84, "I"), "blockDimY": (88, "I"), "blockDimZ": (92, "I"),
        "launchBlocking": (96, "I"), "hostTid": (100, "I"), "clusterDimX": (104, "I"), "clusterDimY": (108, "I"),
        "clusterDimZ": (112, "I"),
    },
    "sm": {
        "smId": (0, "I"), "exception": (8, "I"), "errorPCValid": (12, "I"), "errorPC": (16, "Q"),
        "exceptionString": (40, "Q"),
    },
    "cta": {
        "gridId64": (0, "Q"), "blockIdxX": (8, "I"), "blockIdxY": (12, "I"), "blockIdxZ": (16, "I"),
        "clusterIdxX": (24, "I"), "clusterIdxY": (28, "I"), "clusterIdxZ": (32, "I"),
    },
    "warp": {
        "errorPC": (0, "Q"), "warpId": (8, "I"), "validLanes": (12, "I"), "activeLanes": (16, "I"),
        "isWarpBroken": (20, "I"), "errorPCValid": (24, "I"), "numRegs": (32, "I"), "sharedMemSize": (40, "I"),
        "inSyscallLanes": (48, "I"), "cbuActive": (52, "I"), "barrierScope": (64, "I"),
    },
    "lane": {
        "virtualPC": (0, "Q"), "physPC": (8, "Q"), "lane": (16, "I"), "threadIdxX": (20, "I"), "threadIdxY": (24, "I"),
        "threadIdxZ": (28, "I"), "exception": (32, "I"), "callDepth": (36, "I"), "syscallCallDepth": (40, "I"),
        "ccRegister": (44, "I"), "cbuThreadState": (48, "I"), "rpcLo": (56, "I"), "rpcHi": (60, "I"),
    },
    "backtrace": {"returnAddress": (0, "Q"), "virtualReturnAddress": (8, "Q"), "level": (16, "I")},
    "meta": {
        "generatorName": (0, "Q"), "driverMajor": (8, "I"), "driverMinor": (12, "I"), "cudaMajor": (16, "I"),
        "cudaMinor": (20, "I"), "flags": (24, "I"), "unixTime": (28, "I"),
    },
    "constbank": {"addr": (0, "Q"), "size": (8, "I"), "bankId": (12, "I")},
}  # fmt: skip

KINDS = {
    "global": 2, "local": 3, "shared": 4, "regs": 5, "elfimg": 6, "relfimg": 7, "backtrace": 8, "device": 9,
    "context": 10, "sm": 11, "grid": 12, "cta": 13, "warp": 14, "lane": 15, "module": 16, "pred": 17, "param": 18,
    "uregs": 19, "upred": 20, "constbank": 21, "meta": 22, "cbu_bar": 23,
}  # fmt: skip


def stride_of(table: str, release: int) -> int | None:
    """Bytes of a row that a driver release writes; None when it has no such table yet."""
    fitting = [size for first, size in STRIDES[table] if first <= release]
    return fitting[-1] if fitting else None


def pack_row(table: str, stride: int, fields: dict[str, int]) -> bytes:
    """One row; fields beyond the stride are not written, as an older driver would not."""
    row = bytearray(stride)
    for name, value in fields.items():
        offset, code = OFFSETS[table][name]
        if offset + struct.calcsize(code) <= stride:
            struct.pack_into(f"<{code}", row, offset, value)
    return bytes(row)


class Table:
    """A table under construction. Its position in the section table is known when it is created."""

    def __init__(self, writer: CoreWriter, kind: str, name: str, parent: int, row: int) -> None:
        stride = stride_of(kind, writer.release)
        if stride is None:
            raise ValueError(f"r{writer.release} has no {kind} table")
        self.kind, self.stride, self.rows = kind, stride, bytearray()
        self.index = writer.section(f".cudbg.{name}", KINDS[kind], self.rows, parent, row, entry_size=stride)

    def add(self, **fields: int) -> int:
        """Append a row; returns its number."""
        self.rows += pack_row(self.kind, self.stride, fields)
        return len(self.rows) // self.stride - 1


class _Section(NamedTuple):
    name: str
    type: int
    data: bytearray | bytes | int
    parent: int
    row: int
    address: int
    entry_size: int


class CoreWriter:
    """Collects sections in order; an ``int`` as data is a hole of that many bytes (sparse in files)."""

    def __init__(self, release: int = 580) -> None:
        self.release = release
        self.sections: list[_Section] = []
        self.strings = bytearray(b"\0")

    def string(self, text: str) -> int:
        """Add to ``.strtab``; returns the index that table fields hold."""
        at = len(self.strings)
        self.strings += text.encode() + b"\0"
        return at

    def section(
        self,
        name: str,
        kind: int,
        data: bytearray | bytes | int,
        parent: int = 0,
        row: int = 0,
        *,
        address: int = 0,
        entry_size: int = 0,
    ) -> int:
        """Add a section; returns its index in the section table (0 is the null section)."""
        self.sections.append(_Section(name, SECTION_BASE + kind, data, parent, row, address, entry_size))
        return len(self.sections)

    def table(self, kind: str, name: str, parent: int = 0, row: int = 0) -> Table:
        return Table(self, kind, name, parent, row)

    def words(self, kind: str, name: str, values: list[int], parent: int, row: int) -> int:
        """Registers or predicates: u32 each."""
        data = struct.pack(f"<{len(values)}I", *(v & 0xFFFFFFFF for v in values))
        return self.section(f".cudbg.{name}", KINDS[kind], data, parent, row, entry_size=4)

    def build(self, *, extended_numbering: bool = False) -> bytes:
        """The whole file; holes become zeros. ``extended_numbering`` uses ``e_shnum == 0`` at any count."""
        chunks, tail = self._layout(extended_numbering)
        out = bytearray()
        for offset, data in chunks:
            out += bytes(offset - len(out))
            out += bytes(data) if isinstance(data, int) else data
        return bytes(out) + tail

    def write(self, path: Path, *, extended_numbering: bool = False) -> None:
        """The file on disk; holes stay sparse, so a dump of 100 GiB costs a few blocks."""
        chunks, tail = self._layout(extended_numbering)
        end = 0
        with path.open("wb") as out:
            for offset, data in chunks:
                out.seek(offset)
                if not isinstance(data, int):
                    out.write(data)
                end = offset + (data if isinstance(data, int) else len(data))
            out.seek(end)
            out.write(tail)

    def _layout(self, extended: bool) -> tuple[list[tuple[int, bytes | bytearray | int]], bytes]:
        names, shstr = {}, bytearray(b"\0")
        everything = [
            *self.sections,
            _Section(".strtab", 3, bytes(self.strings), 0, 0, 0, 0),
            _Section(".shstrtab", 3, b"", 0, 0, 0, 0),
        ]
        for item in everything:
            if item.name not in names:
                names[item.name] = len(shstr)
                shstr += item.name.encode() + b"\0"
        count = len(everything) + 1
        chunks: list[tuple[int, bytes | bytearray | int]] = [(0, b"")]
        headers, at = [b""], 64
        for item in everything:
            data: bytes | bytearray | int = bytes(shstr) if item.name == ".shstrtab" else item.data
            size = data if isinstance(data, int) else len(data)
            headers.append(
                struct.pack(
                    "<IIQQQQIIQQ",
                    names[item.name],
                    item.type,
                    2,
                    item.address,
                    at,
                    size,
                    item.parent,
                    item.row,
                    1,
                    item.entry_size,
                )
            )
            chunks.append((at, data))
            at += size
        big = extended or count >= 0xFF00
        headers[0] = struct.pack(
            "<IIQQQQIIQQ", 0, 0, 0, 0, 0, count if big else 0, count - 1 if big else 0, 0, 0, 0
        )
        ident = b"\x7fELF\x02\x01\x01\x33\x07" + bytes(7)
        header = ident + struct.pack(
            "<HHIQQQIHHHHHH",
            4,
            190,
            1,
            0,
            0,
            at,
            0,
            64,
            0,
            0,
            64,
            0 if big else count,
            0xFFFF if big else count - 1,
        )
        chunks[0] = (0, header)
        return chunks, b"".join(headers)
