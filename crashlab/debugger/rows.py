"""What one line of cuda-gdb says, as facts: focus, frame, table rows, instruction."""

from __future__ import annotations

from typing import NamedTuple

from crashlab.facts import Dim3, Hex, InlineFrame


class Focus(NamedTuple):
    """The thread cuda-gdb looks at. ``grid`` may be negative: grids that the device launched count down."""

    kernel: int | None = None
    grid: int | None = None
    cluster: Dim3 | None = None
    cluster_dim: Dim3 | None = None
    block: Dim3 | None = None
    thread: Dim3 | None = None
    device: int | None = None
    sm: int | None = None
    warp: int | None = None
    lane: int | None = None


class Frame(NamedTuple):
    """One frame of a backtrace.

    ``function`` is printed demangled, without launch, arguments of the call and clone suffix, and is
    None for ``??``. ``clone_of`` is the kernel whose private copy of a device function this is.
    ``pc`` is None when gdb leaves it out, which it does when the PC begins a source line.
    """

    level: int | None = None
    pc: Hex | None = None
    function: str | None = None
    args: str | None = None
    grid: Dim3 | None = None
    block: Dim3 | None = None
    file: str | None = None
    line: int | None = None
    clone_of: str | None = None
    inlined: InlineFrame | None = None

    @property
    def is_kernel(self) -> bool:
        """True for the frame that shows the launch ``<<<grid,block>>>``."""
        return self.grid is not None


class KernelRow(NamedTuple):
    """A row of ``info cuda kernels``: one grid. ``sms`` is a mask wider than 128 bits on big chips."""

    focus: bool
    kernel: int
    parent: int | None
    device: int
    grid: int
    status: str
    sms: Hex
    grid_dim: Dim3
    block_dim: Dim3
    invocation: str


class DeviceRow(NamedTuple):
    """A row of ``info cuda devices``."""

    focus: bool
    device: int
    pci: str
    name: str | None
    chip: str | None
    sm_type: str
    sm_count: int
    warps_per_sm: int
    lanes_per_warp: int
    registers_per_lane: int
    active_sms: Hex


class WarpRow(NamedTuple):
    """A row of ``info cuda warps``; ``active`` and ``divergent`` are lane masks."""

    focus: bool
    device: int | None
    sm: int | None
    warp: int
    active: Hex
    divergent: Hex
    pc: Hex
    kernel: int
    block: Dim3
    thread: Dim3


class LaneRow(NamedTuple):
    """A row of ``info cuda lanes``; ``exception`` is None where cuda-gdb prints ``None``."""

    focus: bool
    device: int | None
    sm: int | None
    warp: int | None
    lane: int
    state: str
    pc: Hex
    thread: Dim3
    exception: str | None


class SassLine(NamedTuple):
    """A line of ``x/i`` or ``disassemble``.

    ``name`` is the symbol as printed, mangled unless the user asked otherwise; ``text`` is None when
    cuda-gdb could not disassemble (it needs cuobjdump on PATH).
    """

    pc: Hex
    name: str | None
    offset: int | None
    text: str | None
    is_pc: bool
    is_errorpc: bool


class Located(NamedTuple):
    """An address that cuda-gdb tied to a symbol; ``section`` is the code section, ``.text.KERNEL``."""

    pc: Hex | None
    name: str | None
    offset: int | None = None
    section: str | None = None


class SourceLine(NamedTuple):
    """What ``info line`` or an exception line says about an address: position and who inlined it where.

    ``inlined_function`` is the function that holds ``line``; ``inlined_at`` the place it was inlined
    into.
    """

    file: str
    line: int
    inlined_function: str | None = None
    inlined_at: InlineFrame | None = None
