"""Which of the rebuilt addresses are bad, by the rules of each memory space, with the numbers to check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from crashlab.gpucore.dump import CoreDump
from crashlab.postmortem.accesses import Access
from crashlab.postmortem.arguments import PointerArgument
from crashlab.postmortem.words import counted

WINDOW = 16 << 20
"""Shared and local windows are 16 MiB of generic address space each."""
RESERVED_SHARED = 1024
"""Bytes of a block's shared window that the system keeps, on sm_80 and later."""
_PAGE = 2 << 20
"""Device memory is mapped in pages of 2 MiB: two addresses in one page are both mapped or both not."""
_NULL = 1 << 16
_SMALL = 1 << 36
_ADDRESS_BITS = 49
"""Virtual addresses of Pascal and later GPUs (CUDA C++ Programming Guide, unified memory)."""
_LARGEST = 1 << 38
_INDEX = 1 << 31
_INDEX_BYTES = 16 * _INDEX
"""As far as a 32-bit index of elements of up to 16 bytes can reach."""


class Judgement(NamedTuple):
    """``bad`` holds positions in the list of accesses; ``by_exclusion`` marks an inference.

    ``kind`` and ``sentence`` describe the first bad access; ``limit`` is the crossed bound in bytes.
    """

    bad: frozenset[int]
    kind: str
    sentence: str
    limit: int | None = None
    by_exclusion: bool = False
    undecided: bool = False


def misaligned(accesses: Sequence[Access], width: int) -> Judgement | None:
    """Addresses that are no multiple of the access width."""
    bad = frozenset(i for i, a in enumerate(accesses) if a.address is not None and a.address % width)
    if not bad:
        return None
    remainders = sorted({accesses[i].address or 0 for i in bad}, key=lambda v: v % width)
    values = sorted({v % width for v in remainders})
    shown = ", ".join(str(v) for v in values[:6])
    return Judgement(
        bad,
        "misaligned",
        f"the address is {shown} modulo {width}, and this access must be at a multiple of {width}",
    )


def shared(accesses: Sequence[Access], width: int, limit: int | None, *, reserved: bool) -> Judgement | None:
    """Shared offsets past the block's allocation."""
    if limit is None:
        return None
    bad = frozenset(i for i, a in enumerate(accesses) if a.address is not None and a.address + width > limit)
    if not bad:
        return None
    offsets = sorted(a for i in bad if (a := accesses[i].address) is not None)
    size = f"{limit:,} bytes"
    if reserved and limit > RESERVED_SHARED:
        size += f" ({limit - RESERVED_SHARED:,} + {RESERVED_SHARED:,} reserved)"
    past = offsets[0] - limit
    start = f"{counted(past, 'byte')} past its end" if past >= 0 else "across its end"
    span = (
        f"offset {hex(offsets[0])}"
        if len(offsets) == 1
        else f"offsets {hex(offsets[0])} to {hex(offsets[-1])}"
    )
    return Judgement(
        bad, "shared-past-end", f"at shared {span}; the block has {size}: the first is {start}", limit
    )


def cluster_shared(
    accesses: Sequence[Access], width: int, limit: int | None, ranks: Sequence[int], blocks: int
) -> Judgement | None:
    """Shared memory of the cluster: 16 MiB of window a block, the block's rank in the address."""
    known = frozenset(i for i, a in enumerate(accesses) if a.address is not None)
    strange = [rank for rank in ranks if rank >= blocks]
    if strange:
        text = f"in the shared window of rank {strange[0]}; the cluster has {blocks} block{'s' if blocks > 1 else ''}"
        return Judgement(known, "no-such-block", text, blocks)
    found = shared(accesses, width, limit, reserved=True)
    if found is None:
        return None
    ranks_text = ", ".join(str(rank) for rank in ranks)
    return found._replace(sentence=f"{found.sentence}, in the window of the cluster's rank {ranks_text}")


def global_memory(
    dump: CoreDump,
    accesses: Sequence[Access],
    width: int,
    arguments: Sequence[PointerArgument],
    base: PointerArgument | None = None,
) -> Judgement | None:
    """Unmapped global addresses, against dumped memory where it is all there, else by pages and arguments.

    ``base`` is the argument that the code computes the address from, where it is known. A full dump leaves
    out memory that was mapped with cuMemMap: where an argument points into no dumped range, being in none
    of them proves nothing.
    """
    known = [i for i, a in enumerate(accesses) if a.address is not None]
    ranges = sorted((s.address, s.address + s.size) for s in dump.memory_ranges() if s.size)
    outside = [i for i in known if not _inside(accesses[i].address or 0, width, ranges)]
    if not outside:
        return None
    impossible = describe_impossible(accesses[outside[0]].address or 0, arguments)
    if impossible is not None:
        return Judgement(frozenset(outside), *impossible)
    if ranges and all(_inside(argument.value, 1, ranges) for argument in arguments):
        return _against_ranges(accesses, outside, ranges)
    return _by_pages(accesses, outside, arguments, base)


def _inside(address: int, width: int, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(start <= address and address + width <= end for start, end in ranges)


def _against_ranges(accesses: Sequence[Access], bad: list[int], ranges: list[tuple[int, int]]) -> Judgement:
    address = accesses[bad[0]].address or 0
    below = [r for r in ranges if r[0] <= address]
    above = [r for r in ranges if r[0] > address]
    if below:
        start, end = below[-1]
        kind, text = (
            "past-allocation",
            f"{counted(address - end, 'byte')} past the end of the dumped allocation {hex(start)} to {hex(end)}",
        )
        if above and above[0][0] - address < address - end:
            start, end = above[0]
            kind, text = (
                "before-allocation",
                f"{counted(start - address, 'byte')} before the dumped allocation {hex(start)} to {hex(end)}",
            )
    else:
        start, end = above[0]
        kind, text = (
            "before-allocation",
            f"{counted(start - address, 'byte')} before the dumped allocation {hex(start)} to {hex(end)}",
        )
    return Judgement(frozenset(bad), kind, f"in no dumped allocation; {text}")


def _by_pages(
    accesses: Sequence[Access],
    known: list[int],
    arguments: Sequence[PointerArgument],
    base: PointerArgument | None,
) -> Judgement:
    """At least one address is unmapped. Lanes whose page holds a pointer argument are excluded first."""
    pages: dict[int, list[int]] = {}
    for i in known:
        pages.setdefault((accesses[i].address or 0) // _PAGE, []).append(i)
    own = {argument.value // _PAGE for argument in arguments}
    strange = {page: members for page, members in pages.items() if page not in own}
    if len(pages) == 1:
        bad, by_exclusion, undecided = known, False, False
    elif len(strange) >= 1 and len(strange) < len(pages):
        bad = sorted(i for members in strange.values() for i in members)
        by_exclusion, undecided = True, len(strange) > 1
    else:
        bad, by_exclusion, undecided = known, False, True
    first = accesses[bad[0]].address or 0
    kind, sentence = describe_global(first, arguments, base)
    return Judgement(frozenset(bad), kind, sentence, None, by_exclusion, undecided)


def describe_impossible(address: int, arguments: Sequence[PointerArgument]) -> tuple[str, str] | None:
    """Kind and sentence for an address where no device memory can be; None for a plausible one."""
    if address < _NULL:
        return "null-page", f"{address:,} bytes from address 0: a null pointer plus a small offset"
    if address >> _ADDRESS_BITS:
        return "not-canonical", (
            f"beyond the {_ADDRESS_BITS}-bit address space of the GPU: packed or overwritten data used as a pointer"
        )
    # cuMemAddressReserve hands out low addresses too, but whole pages: an argument that is one is a buffer.
    reserved = any(a.value % _PAGE == 0 and 0 <= address - a.value < _LARGEST for a in arguments)
    if address < _SMALL and not reserved:
        return (
            "small-integer",
            "below 2^36, where hardly any device memory is mapped: an integer used as a pointer, or a truncated one",
        )
    return None


def describe_global(
    address: int, arguments: Sequence[PointerArgument], base: PointerArgument | None = None
) -> tuple[str, str]:
    """What an unmapped global address looks like: kind and sentence.

    It is measured from ``base``, else from the nearest argument, which need not have to do with it.
    """
    impossible = describe_impossible(address, arguments)
    if impossible is not None:
        return impossible
    if not arguments:
        return "unmapped", "not mapped; the dump holds no argument to measure it against"
    nearest = min(arguments, key=lambda a: abs(address - a.value))
    origin = base or nearest
    distance = address - origin.value
    where = _distance(distance, origin)
    aside = ""
    if base is not None:
        where += ", which the code computes it from"
        if nearest.value != base.value:
            aside = f"; the nearest pointer is another: {_distance(address - nearest.value, nearest)}"
    kind, why = _by_distance(distance)
    if kind == "far-from-arguments" and abs(address - nearest.value) <= _INDEX_BYTES:
        kind = "far-from-base"
    return kind, f"{where}{why}{aside}"


def _distance(distance: int, origin: PointerArgument) -> str:
    if distance == 0:
        return f"at the first byte of {origin.label} ({hex(origin.value)})"
    side = "past" if distance > 0 else "before"
    return f"{counted(abs(distance), 'byte')} {side} {origin.label} ({hex(origin.value)})"


def _by_distance(distance: int) -> tuple[str, str]:
    """Kind and clause for an address that lies ``distance`` bytes behind a pointer."""
    if 0 <= distance < _PAGE:
        return (
            "at-argument",
            ", in the same or the next 2 MiB page: the buffer ends before it, or was freed",
        )
    if abs(distance) > _INDEX_BYTES:
        return (
            "far-from-arguments",
            ": further than a 32-bit index reaches, as a wild index or pointer gives",
        )
    if distance < 0:
        return "before-argument", ": below the buffer's base, as a negative or overflowed 32-bit index gives"
    if distance >= _INDEX:
        return "overflow-distance", ": more than 2 GiB away, as an overflowed 32-bit index gives"
    return "past-argument", ""


def bit_flip_hint(address: int, arguments: Sequence[PointerArgument]) -> str | None:
    """A single flipped bit that would explain the address; only a hint, since a wild index looks the same.

    None unless exactly one bit between 21 (the page size) and 48 leads into the first page behind exactly one
    pointer argument.
    """
    found = {
        (bit, argument)
        for bit in range(21, _ADDRESS_BITS)
        for argument in arguments
        if 0 <= (address ^ 1 << bit) - argument.value < _PAGE
    }
    if len(found) != 1:
        return None
    bit, argument = found.pop()
    offset = (address ^ 1 << bit) - argument.value
    return (
        f"with bit {bit} flipped the address would lie {offset:,} bytes into {argument.label}; memory errors do that, "
        "and so does an index that is off by a power of two"
    )
