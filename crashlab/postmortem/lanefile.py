"""The registers of one lane by name, and the value of an address expression in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from crashlab.facts import Dim3
from crashlab.gpucore.dump import CoreDump
from crashlab.gpucore.rows import CtaRow, GridRow, LaneRow, WarpRow
from crashlab.sass.address import AddressExpr

_CONSTANTS = {"RZ": 0, "URZ": 0, "PT": 1, "UPT": 1}
_PREDICATES = tuple(f"{prefix}{number}" for prefix in ("P", "UP") for number in range(7))
_THREAD = ("SR_TID.X", "SR_TID.Y", "SR_TID.Z")
_BLOCK = ("SR_CTAID.X", "SR_CTAID.Y", "SR_CTAID.Z")


class LaneFile(Mapping[str, int]):
    """Register name → value (32 bits; predicates 0 or 1) for one lane; registers not dumped are missing.

    ``known`` adds what is the same for all lanes of a block: special registers and constant words.
    """

    def __init__(
        self, dump: CoreDump, warp: WarpRow, lane: LaneRow, known: Mapping[str, int] | None = None
    ) -> None:
        self._values = {**_CONSTANTS, **(known or {})}
        if lane.thread is not None:
            self._values.update(zip(_THREAD, lane.thread, strict=True))
        for prefix, words in (
            ("R", dump.registers(lane)),
            ("P", dump.predicates(lane)),
            ("UR", dump.uniform_registers(warp)),
            ("UP", dump.uniform_predicates(warp)),
        ):
            for number, value in enumerate(words or ()):
                self._values.setdefault(f"{prefix}{number}", value)

    def __getitem__(self, name: str) -> int:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def predicates(self) -> tuple[int | None, ...]:
        """P0 to P6 and UP0 to UP6."""
        return tuple(self._values.get(name) for name in _PREDICATES)


def block_constants(dump: CoreDump, cta: CtaRow | None, grid: GridRow | None) -> dict[str, int]:
    """What every lane of a block can read: its block index, and the argument words of constant bank 0."""
    known: dict[str, int] = {}
    if cta is not None and cta.block is not None:
        known.update(zip(_BLOCK, cta.block, strict=True))
        rank = _cluster_rank(cta.block, grid.cluster_dim if grid is not None else None)
        if rank is not None:
            known["SR_CgaCtaId"] = rank
    data = dump.parameters(grid) if grid is not None else None
    if grid is not None and grid.params_offset and data is not None:
        words = bytes(data[: len(data) // 4 * 4][:4096])
        for at in range(0, len(words), 4):
            known[f"c[0x0][{hex(grid.params_offset + at)}]"] = int.from_bytes(words[at : at + 4], "little")
    return known


def _cluster_rank(block: Dim3, cluster: Dim3 | None) -> int | None:
    """The block's rank in its cluster, x first; 0 without clusters (all extents 0), None on old drivers."""
    if cluster is None:
        return None
    x, y, z = (max(1, extent) for extent in cluster)
    return block.x % x + (block.y % y) * x + (block.z % z) * x * y


def evaluate(expr: AddressExpr, values: Mapping[str, int], *, wide: bool) -> int | None:
    """The address an expression gives; ``wide`` computes in 64 bits, else in 32. None: a register is missing."""
    base = _register(expr.base, expr.base_bits, values)
    uniform = _register(expr.uniform, expr.uniform_bits, values)
    if base is None or uniform is None:
        return None
    if expr.base_bits == 32 and expr.base_extension == "S32" and base >> 31:
        base -= 1 << 32
    total = base * expr.scale + uniform + expr.offset
    return total % (1 << 64 if wide else 1 << 32)


def _register(name: str | None, bits: int, values: Mapping[str, int]) -> int | None:
    if name is None:
        return 0
    low = values.get(name)
    if low is None or bits != 64 or name in _CONSTANTS:
        return low
    prefix, number = name.rstrip("0123456789"), int(name.lstrip("UR"))
    high = values.get(f"{prefix}{number + 1}")
    return None if high is None else low | high << 32
