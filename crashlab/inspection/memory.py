"""Views of memory: which ranges were dumped, and their bytes."""

from __future__ import annotations

from collections.abc import Iterable

from crashlab.errors import UsageError
from crashlab.facts import Hex
from crashlab.gpucore import layout
from crashlab.gpucore.dump import CoreDump
from crashlab.gpucore.sections import Section
from crashlab.inspection.select import Focus, lanes, warps
from crashlab.inspection.state import table
from crashlab.inspection.table import Table

_BYTES = 4096


def ranges(dump: CoreDump, _focus: Focus) -> Table:
    """All dumped memory: global, managed, shared, local."""

    def rows() -> Iterable[tuple[object, ...]]:
        for kind in (layout.GLOBAL_MEMORY, layout.MANAGED_MEMORY, layout.SHARED_MEMORY, layout.LOCAL_MEMORY):
            for section in dump.sections.of_kind(kind):
                if section.size:
                    yield (
                        layout.TYPE_NAMES[kind],
                        Hex(section.address),
                        Hex(section.address + section.size),
                        section.size,
                        dump.sections.name(section),
                    )

    found = table("space start end bytes section", rows())
    if not found.rows:
        return found._replace(
            note="this dump was written without memory (light dump): record with --dump shared or full"
        )
    return found


def shared(dump: CoreDump, focus: Focus, offset: int, length: int) -> Table:
    """Bytes of one block's shared memory."""
    for at in warps(dump, focus):
        section = dump.shared_memory(at.cta) if at.cta else None
        if section is not None and section.size:
            return _dump_bytes(dump, section, offset, length, base=0)
    raise UsageError(
        "No shared memory of such a block is in the dump.", hint="'crashlab inspect CORE memory' lists it."
    )


def local(dump: CoreDump, focus: Focus, offset: int, length: int) -> Table:
    """Bytes of one thread's local memory."""
    for at in warps(dump, focus):
        for lane in lanes(dump, at, focus):
            section = dump.local_memory(lane)
            if section is not None and section.size:
                return _dump_bytes(dump, section, offset, length, base=0)
    raise UsageError(
        "No local memory of such a thread is in the dump.", hint="'crashlab inspect CORE memory' lists it."
    )


def at_address(dump: CoreDump, address: int, length: int) -> Table:
    """Bytes of global or managed memory at an absolute address."""
    for section in dump.memory_ranges():
        if section.address <= address < section.address + section.size:
            return _dump_bytes(dump, section, address - section.address, length, base=section.address)
    if any(section.size for section in dump.memory_ranges()):
        raise UsageError(
            f"Address {hex(address)} is in no dumped range.",
            hint="'crashlab inspect CORE memory' lists what was dumped.",
        )
    raise UsageError(
        f"No global memory is in this dump ({_recorded(dump)}), so nothing is known of address {hex(address)}.",
        hint="'crashlab inspect CORE params' has the kernels' parameters, tensor maps among them; record with "
        "--dump full for all memory.",
    )


def _recorded(dump: CoreDump) -> str:
    kinds = (layout.SHARED_MEMORY, layout.LOCAL_MEMORY)
    held = [layout.TYPE_NAMES[kind] for kind in kinds if any(s.size for s in dump.sections.of_kind(kind))]
    return f"of memory it has only {' and '.join(held)}" if held else "a light dump, without memory"


def _dump_bytes(dump: CoreDump, section: Section, offset: int, length: int, *, base: int) -> Table:
    data, asked = dump.data(section), length
    length = min(length, _BYTES, max(0, len(data) - offset))
    chunk = bytes(data[offset : offset + length]) if offset >= 0 else b""
    rows = []
    for start in range(0, len(chunk), 16):
        part = chunk[start : start + 16]
        words = tuple(Hex(int.from_bytes(part[i : i + 4], "little")) for i in range(0, len(part), 4))
        text = "".join(chr(b) if 32 <= b < 127 else "." for b in part)
        rows.append((Hex(base + offset + start), " ".join(f"{w:08x}" for w in words), text))
    return table("address words text", rows, _cut(len(data), offset, asked, len(chunk)))


def _cut(size: int, offset: int, asked: int, shown: int) -> str | None:
    """Why fewer bytes are shown than were asked for."""
    if offset >= size:
        return f"nothing there: this memory has {size:,} bytes"
    if shown >= asked:
        return None
    if shown == _BYTES:
        return f"{asked:,} bytes were asked for; at most {_BYTES:,} are shown at a time"
    return f"{asked:,} bytes were asked for; this memory ends after {shown:,} of them"
