"""From a PC to the module, the function and the kernel that hold it."""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

from typing import NamedTuple

from crashlab import facts
from crashlab.cubin.demangle import demangle
from crashlab.cubin.image import Cubin
from crashlab.cubin.symbols import SymbolHit
from crashlab.errors import MalformedCubin
from crashlab.gpucore.dump import CoreDump
from crashlab.gpucore.rows import GridRow, ModuleRow


class CodeHit(NamedTuple):
    """The code around a PC. ``symbol`` is None when the section has no function symbol there."""

    pc: int
    module: ModuleRow
    cubin: Cubin
    symbol: SymbolHit | None

    @property
    def function(self) -> facts.Function | None:
        if self.symbol is None:
            return None
        mangled = self.symbol.function.mangled
        return facts.Function(demangle(mangled), mangled, self.symbol.offset)

    @property
    def kernel_name(self) -> str | None:
        """Mangled name of the ``__global__`` entry whose range holds the PC."""
        return self.symbol.kernel.mangled if self.symbol and self.symbol.kernel else None

    @property
    def source(self) -> facts.Source | None:
        return self.source_of(self.pc)

    def source_of(self, pc: int) -> facts.Source | None:
        """The source position of another PC of the same module; None too where its line table is damaged."""
        try:
            return self.cubin.source_at(pc)
        except MalformedCubin:
            return None


class CodeMap:
    """All module images of a dump, opened when a PC asks for them."""

    def __init__(self, dump: CoreDump) -> None:
        self.dump = dump
        self._modules = dump.modules
        self._cubins: dict[tuple[int, int], Cubin | None] = {}
        self._hits: dict[int, CodeHit | None] = {}

    def cubin(self, module: ModuleRow) -> Cubin | None:
        """The relocated image of a module; None when the dump has none or it is damaged."""
        key = (module.section, module.row)
        if key not in self._cubins:
            view = self.dump.image(module)
            try:
                self._cubins[key] = Cubin(view) if view else None
            except MalformedCubin as error:
                self.dump.note(f"The image of module {module.row} is damaged: {error}.")
                self._cubins[key] = None
        return self._cubins[key]

    def at(self, pc: int | None, grid: GridRow | None = None) -> CodeHit | None:
        """The code at an absolute PC; None when no image holds it.

        The module of ``grid`` is tried first: it nearly always is the one.
        """
        if pc is None:
            return None
        if pc in self._hits:
            return self._hits[pc]
        hit = None
        for module in self._in_order(grid):
            hit = self._look(module, pc)
            if hit is not None:
                break
        else:  # all were opened: those without an image need not be asked again, a lying table may have many
            self._modules = tuple(m for m in self._modules if self.cubin(m) is not None)
        self._hits[pc] = hit
        return hit

    def _in_order(self, grid: GridRow | None) -> list[ModuleRow]:
        handle = grid.module_handle if grid else None
        return sorted(self._modules, key=lambda m: m.handle != handle)

    def _look(self, module: ModuleRow, pc: int) -> CodeHit | None:
        cubin = self.cubin(module)
        if cubin is None:
            return None
        try:
            if not cubin.contains(pc):
                return None
            return CodeHit(pc, module, cubin, cubin.symbol_at(pc))
        except MalformedCubin as error:
            self.dump.note(f"The image of module {module.row} is damaged: {error}.")
            return None

    def kernel_of(self, grid: GridRow | None) -> str | None:
        """Mangled name of the kernel a grid runs, by its entry address."""
        if grid is None or not grid.function_entry:
            return None
        hit = self.at(grid.function_entry, grid)
        if hit is None or hit.symbol is None:
            return None
        return hit.kernel_name or hit.symbol.function.mangled
