"""One code image of a dump: everything that can be asked about a PC or a function in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from crashlab.cubin import notes
from crashlab.cubin.elf import Elf, Section
from crashlab.cubin.lines import LineRange, Lines
from crashlab.cubin.symbols import FunctionSymbol, SymbolHit, Symbols
from crashlab.facts import Source

if TYPE_CHECKING:
    from crashlab.cubin.nvinfo import KernelInfo, Parameter


class Cubin:
    """A CUDA ELF image, relocated or as built; every part is read on first use.

    ``view`` is the image's bytes, a slice of the mapped dump. Raises
    :class:`~crashlab.errors.MalformedCubin`, here for an unusable header or section table and later
    for a damaged part; the other parts stay usable.
    """

    def __init__(self, view: memoryview) -> None:
        self.elf = Elf(view)
        self._symbols: Symbols | None = None
        self._lines: Lines | None = None
        self._sha256: str | None = None

    @property
    def arch(self) -> str | None:
        """``sm_90``, ``sm_90a`` or ``sm_100f``, as far as the image itself tells."""
        return notes.architecture(self.elf)

    @property
    def compiler(self) -> str | None:
        """The tool that made the code, as ``ptxas 13.0, V13.0.88``; None before CUDA 13.0's notes."""
        return notes.compiler(self.elf)

    @property
    def toolchain(self) -> notes.Toolchain | None:
        """The same in parts, with the options the tool was given."""
        return notes.toolchain(self.elf)

    @property
    def sha256(self) -> str:
        """Hash of the image as it stands in the dump, in hex; relocation makes it differ between runs."""
        if self._sha256 is None:
            import hashlib  # 13 ms, and a fast verdict needs no hash

            self._sha256 = hashlib.sha256(self.elf.view).hexdigest()
        return self._sha256

    @property
    def symbols(self) -> Symbols:
        """The symbol table."""
        if self._symbols is None:
            self._symbols = Symbols(self.elf)
        return self._symbols

    @property
    def lines(self) -> Lines:
        """The line table."""
        if self._lines is None:
            self._lines = Lines(self.elf, self.symbols)
        return self._lines

    def contains(self, pc: int) -> bool:
        """Whether a loaded code section of this image holds the address."""
        return self.elf.code_section(pc) is not None

    def section_at(self, pc: int) -> Section | None:
        """The loaded code section that holds the address."""
        index = self.elf.code_section(pc)
        return None if index is None else self.elf.section(index)

    def symbol_at(self, pc: int) -> SymbolHit | None:
        """The innermost function and the kernel around an absolute PC; None outside this image."""
        section = self.section_at(pc)
        return None if section is None else self.symbols.at(section, pc - section.address)

    def source_at(self, pc: int) -> Source | None:
        """The source position of an absolute PC with its inline chain; see :meth:`Lines.source`."""
        section = self.section_at(pc)
        return None if section is None else self.lines.source(section, pc - section.address)

    def line_map(self, pc: int) -> tuple[LineRange, ...]:
        """The source lines of the section that holds a PC, as absolute address ranges."""
        section = self.section_at(pc)
        if section is None:
            return ()
        base = section.address
        return tuple(r._replace(start=r.start + base, end=r.end + base) for r in self.lines.ranges(section))

    def code_window(self, pc: int) -> tuple[int, bytes] | None:
        """Start address and bytes of the whole code section that holds a PC."""
        section = self.section_at(pc)
        return None if section is None else (section.address, bytes(self.elf.data(section)))

    def code_of(self, function: str | FunctionSymbol) -> tuple[int, memoryview] | None:
        """Start (absolute when loaded) and code of a function, by symbol or mangled name."""
        symbol = self.symbols.find(function) if isinstance(function, str) else function
        if symbol is None:
            return None
        section = self.elf.section(symbol.section)
        start = symbol.start - section.address
        data = self.elf.data(section)
        if not 0 <= start < len(data):
            return None
        return symbol.start, data[start : start + symbol.size] if symbol.size else data[start:]

    def functions(self) -> Iterator[FunctionSymbol]:
        """All defined functions."""
        return self.symbols.functions()

    def kernels(self) -> Iterator[FunctionSymbol]:
        """All ``__global__`` entries."""
        return self.symbols.kernels()

    def parameters(self, kernel: str) -> tuple[Parameter, ...]:
        """The parameters of a kernel (mangled name) by ordinal; empty when the image has none on record."""
        from crashlab.cubin import nvinfo

        return nvinfo.parameters(self.elf, kernel)

    def kernel_info(self, kernel: str) -> KernelInfo:
        """Registers, shared and local memory, parameter bank of a kernel (mangled name)."""
        from crashlab.cubin import nvinfo

        return nvinfo.kernel_info(self.elf, self.symbols, kernel)
