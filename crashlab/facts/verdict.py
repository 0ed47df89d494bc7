"""The verdict and its parts: exception, kernel, instruction, address, hang."""

# No "from __future__ import annotations" here: typing.NamedTuple would compile every annotation string at
# import, which doubles the cost of these classes (docs/adr/0001-named-tuples.md).

from collections.abc import Mapping
from typing import NamedTuple

from crashlab.facts.values import Dim3, Hex


class GpuException(NamedTuple):
    """What the hardware reported. ``precision``: lane, warp, sm or device."""

    code: int | None
    name: str
    precision: str | None = None
    driver_text: str | None = None


class Launch(NamedTuple):
    """One kernel launch. ``shared_bytes`` counts the whole block window, system-reserved bytes included."""

    grid: Dim3 | None = None
    block: Dim3 | None = None
    cluster: Dim3 | None = None
    shared_bytes: int | None = None
    registers: int | None = None
    grid_id: int | None = None


class Kernel(NamedTuple):
    """A ``__global__`` entry. ``launch_source``: grid (its grid row was found) or inferred."""

    name: str | None
    mangled: str | None
    launch: Launch | None = None
    launch_source: str | None = None


class Function(NamedTuple):
    """The innermost function that holds a PC; ``offset`` is in bytes from its start."""

    name: str | None
    mangled: str | None
    offset: int | None = None


class InlineFrame(NamedTuple):
    """A call site, innermost first. ``function`` is the mangled name of what was inlined there."""

    file: str | None
    line: int | None
    function: str | None = None


class Source(NamedTuple):
    """A source position; ``inlined`` lists the call sites outwards from it."""

    file: str
    line: int
    inlined: tuple[InlineFrame, ...] = ()


class WindowLine(NamedTuple):
    """One instruction of the window around the fault.

    ``note`` is our annotation (what it computed, with which values); ``line`` its source line.
    """

    pc: Hex
    text: str
    fault: bool = False
    note: str | None = None
    line: int | None = None


class Instruction(NamedTuple):
    """The faulting instruction in nvdisasm's spelling, predicate included.

    ``access``: load, store, atomic, reduce, copy, branch, trap, barrier; None when it is none of these.
    """

    text: str
    opcode: str | None = None
    predicate: str | None = None
    access: str | None = None
    space: str | None = None
    width_bytes: int | None = None
    window: tuple[WindowLine, ...] = ()
    decoded_by: str | None = None


class Library(NamedTuple):
    """Whose kernel it is. ``family`` is the name with tiles, hashes and suffixes normalised away."""

    name: str | None
    family: str | None = None
    evidence: tuple[str, ...] = ()
    confidence: str | None = None
    details: Mapping[str, str] | None = None


class Module(NamedTuple):
    """The code image that holds the PC. ``index`` is its row in the dump's module table."""

    index: int | None  # type: ignore[assignment]  # the contract's name; hides tuple.index
    sha256: str | None = None
    bytes: int | None = None
    arch: str | None = None
    compiler: str | None = None


class Where(NamedTuple):
    """The place on the GPU. ``threads`` are thread indices that really accessed badly, when known."""

    device: int | None = None
    device_name: str | None = None
    sm_arch: str | None = None
    sms: tuple[int, ...] = ()
    block: Dim3 | None = None
    warp: int | None = None
    threads: tuple[Dim3, ...] = ()


class LaneAddress(NamedTuple):
    """The address one lane used. ``bad`` is None when no rule could judge it."""

    lane: int
    thread: Dim3 | None
    address: Hex | None
    bad: bool | None = None
    predicated_off: bool = False
    why: str | None = None
    block: Dim3 | None = None
    sm: int | None = None
    warp: int | None = None


class Address(NamedTuple):
    """The rebuilt address. ``state``: recovered, not-recoverable or not-applicable; ``why`` says why not.

    ``finding`` is the sentence with numbers; ``kind`` its machine form (``shared-past-end``,
    ``misaligned``, ``past-allocation``, ``far-from-arguments``, ``far-from-base``, ``null-page``, ``local-stack``,
    ``bad-descriptor``, …). ``limit`` is the bound that was crossed, in bytes, where there is one.
    ``origin`` are the instructions that computed the address, nearest first. ``hint`` is a possibility
    that the numbers allow and nothing proves.
    """

    state: str
    value: Hex | None = None
    per_lane: tuple[LaneAddress, ...] = ()
    space: str | None = None
    why: str | None = None
    finding: str | None = None
    kind: str | None = None
    limit: int | None = None
    width_bytes: int | None = None
    origin: tuple[WindowLine, ...] = ()
    hint: str | None = None


class Confidence(NamedTuple):
    """``level``: high, medium or low."""

    level: str
    reasons: tuple[str, ...] = ()


class Fault(NamedTuple):
    """One distinct (exception, PC) that the hardware or a text source reported."""

    exception: GpuException | None
    pc: Hex | None
    pc_source: str | None
    kernel: Kernel | None = None
    function: Function | None = None
    source: Source | None = None
    module: Module | None = None
    where: Where | None = None
    instruction: Instruction | None = None
    reports: int | None = None


class HangGroup(NamedTuple):
    """Warps of a resident grid that stand at one PC. ``state``: spinning, barrier, waiting, running."""

    kernel: str | None
    function: str | None
    pc: Hex
    warps: int
    blocks: int
    sms: tuple[int, ...] = ()
    instruction: str | None = None
    source: Source | None = None
    state: str | None = None
    detail: str | None = None


class Hang(NamedTuple):
    """Where every resident warp stood when a dump was taken without an exception."""

    groups: tuple[HangGroup, ...] = ()
    waits: tuple[str, ...] = ()
    resident_blocks: int | None = None
    launched_blocks: int | None = None


class Verdict(NamedTuple):
    """The answer. ``kind`` is an open enum: see docs/reference/report-json.md."""

    kind: str
    headline: str
    exception: GpuException | None = None
    kernel: Kernel | None = None
    function: Function | None = None
    pc: Hex | None = None
    pc_source: str | None = None
    instruction: Instruction | None = None
    source: Source | None = None
    library: Library | None = None
    module: Module | None = None
    where: Where | None = None
    address: Address | None = None
    confidence: Confidence | None = None
    does_not_mean: tuple[str, ...] = ()
    hang: Hang | None = None
