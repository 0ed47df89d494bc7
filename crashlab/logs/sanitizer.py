"""compute-sanitizer's report as faults.

Lines start with ``=========``. A block begins with its kind one blank behind the mark; indented lines
go on. Seen: 2025.3 (``Access to 0x… is out of bounds``, ``[clone KERNEL] FUNCTION``) and the older
``Address 0x… is out of bounds`` with thousands separators. Errors that a library provokes and
handles itself (NCCL probes with ``cudaErrorNoKernelImageForDevice``) are noise.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from crashlab.facts import Dim3, Hex
from crashlab.logs.lazy import Lazy
from crashlab.logs.text import Line, read_lines

MAX_FAULTS = 1024
MAX_FRAMES = 64

MARK = "========="
_ACCESS = Lazy(r"Invalid __(\w{1,16})__ (\w{1,16}) of size ([\d,]{1,20}) bytes")
_HIT = Lazy(r"Program hit (\w{1,64})(?: \(error (\d{1,6})\))?")
_CALL = Lazy(r"on CUDA API call to (\w{1,128})")
_KINDS = (
    ("misaligned", Lazy(r"Misaligned ")),
    ("race", Lazy(r"(?:Error|Warning): (?:Race|Potential [A-Z]{3})|Race reported")),
    ("barrier", Lazy(r"Barrier error|Divergent thread")),
    ("uninitialized", Lazy(r"Uninitialized __(\w{1,16})__ memory read of size ([\d,]{1,20})")),
    ("leak", Lazy(r"Leaked [\d,]{1,20} bytes")),
    ("trap", Lazy(r"Trace/breakpoint trap")),
    ("device-assert", Lazy(r"(?:Device-side )?[Aa]ssert")),
    ("stack-overflow", Lazy(r"Stack overflow")),
    ("error", Lazy(r"(?:Error|Warning|Invalid|Unspecified|Malloc/Free|Fatal|Unused)\b")),
)
_CLONE = Lazy(r"\[clone (.{1,4096})\] ")
# cuda-memcheck's old order: `0x00000170 in FILE:LINE:FUNCTION` or `0x170 in FUNCTION`.
_OLD = Lazy(r"0x([0-9a-fA-F]{1,16}) in (?:([^:]{1,2048}):(\d{1,9}):)?(.{1,4096})")
_OFFSET = Lazy(r"\+0x([0-9a-fA-F]{1,16})")
_FILE = Lazy(r" in ([^:]{1,2048}):(\d{1,9})")
_BY = Lazy(r"by thread \((\d{1,10}),(\d{1,10}),(\d{1,10})\) in block \((\d{1,10}),(\d{1,10}),(\d{1,10})\)")
_ADDRESS = Lazy(r"(?:Access (?:at|to) |Address )0x([0-9a-fA-F]{1,16}) is (.{1,200})")
_NEAREST = Lazy(
    r"(?:is )?(?:([\d,]{1,27}) bytes )?(after|before|inside) the nearest allocation "
    r"at 0x([0-9a-fA-F]{1,16}) of size ([\d,]{1,27}) bytes"
)
_FRAME = Lazy(r"(Host|Device) Frame: ?(.{1,2048})")
_TOTAL = Lazy(r"ERROR SUMMARY: ([\d,]{1,12}) errors?$")
_NOISE = frozenset(
    ("cudaErrorNoKernelImageForDevice", "cudaErrorPeerAccessAlreadyEnabled", "CUDA_ERROR_NOT_FOUND")
)


class NearestAllocation(NamedTuple):
    """The allocation beside a bad address. ``distance`` in bytes as printed (the first byte past the
    end counts as 1), None when inside; ``side`` is after, before or inside."""

    distance: int | None
    side: str
    base: Hex
    size: int


class SanitizerFault(NamedTuple):
    """One block. ``kind``: invalid-access, api-error, race, barrier, uninitialized, leak, trap, …

    ``function`` is the device function with the instruction, ``kernel`` the launched kernel; both as
    printed (demangled). ``times`` counts blocks that differ only in thread and address.
    """

    kind: str
    text: str
    line: int
    space: str | None = None
    access: str | None = None
    size: int | None = None
    kernel: str | None = None
    function: str | None = None
    offset: int | None = None
    file: str | None = None
    source_line: int | None = None
    thread: Dim3 | None = None
    block: Dim3 | None = None
    address: Hex | None = None
    problem: str | None = None
    nearest: NearestAllocation | None = None
    api_error: str | None = None
    api_call: str | None = None
    device_frames: tuple[str, ...] = ()
    host_frames: tuple[str, ...] = ()
    times: int = 1


class SanitizerLog(NamedTuple):
    """All faults in order; ``total`` is the tool's own count, ``noise`` the API errors left out."""

    faults: tuple[SanitizerFault, ...] = ()
    total: int | None = None
    noise: int = 0
    dropped: int = 0


class SanitizerReader:
    """Feed lines; :meth:`result` ends the reading. Memory is bounded."""

    def __init__(self) -> None:
        self._current: SanitizerFault | None = None
        self._faults: dict[tuple[object, ...], SanitizerFault] = {}
        self._total: int | None = None
        self._noise = 0
        self._dropped = 0

    def feed(self, line: Line) -> bool:
        """Read one line; True if it was the sanitizer's."""
        if not line.text.startswith(MARK):
            return False
        body = line.text[len(MARK) :].rstrip()
        if body.startswith(("  ", " \t")):
            if self._current is not None:
                self._current = _add(self._current, body.strip())
            return True
        self._end()
        text = body.strip()
        if total := _TOTAL.match(text):
            self._total = (self._total or 0) + _number(total.group(1))
        elif text:
            self._current = _begin(text, line.number)
        return True

    def result(self) -> SanitizerLog:
        """What was read."""
        self._end()
        return SanitizerLog(tuple(self._faults.values()), self._total, self._noise, self._dropped)

    def _end(self) -> None:
        fault, self._current = self._current, None
        if fault is None:
            return
        if fault.api_error in _NOISE:
            self._noise += 1
            return
        key = (fault.kind, fault.text, fault.kernel, fault.function, fault.offset, fault.problem)
        earlier = self._faults.get(key)
        if earlier is not None:
            self._faults[key] = earlier._replace(times=earlier.times + 1)
        elif len(self._faults) < MAX_FAULTS:
            self._faults[key] = fault
        else:
            self._dropped += 1


def _number(text: str) -> int:
    return int(text.replace(",", "") or "0")


def _begin(text: str, line: int) -> SanitizerFault | None:
    if found := _ACCESS.match(text):
        space, access, size = found.groups()
        return SanitizerFault("invalid-access", text, line, space, access, _number(size))
    if found := _HIT.match(text):
        call = _CALL.search(text)
        return SanitizerFault(
            "api-error",
            text[:1024],
            line,
            api_error=found.group(1),
            api_call=call.group(1) if call else None,
        )
    for kind, pattern in _KINDS:
        if found := pattern.match(text):
            fault = SanitizerFault(kind, text[:1024], line)
            return _place(fault, text) if kind == "race" else fault
    return None  # banner, summary, progress


def _add(fault: SanitizerFault, text: str) -> SanitizerFault:
    """One indented line of the block."""
    if text.startswith("at "):
        return _place(fault, text[3:])
    if found := _BY.match(text):
        x = [int(value) for value in found.groups()]
        return fault._replace(thread=Dim3(x[0], x[1], x[2]), block=Dim3(x[3], x[4], x[5]))
    if found := _ADDRESS.match(text):
        return fault._replace(address=Hex(int(found.group(1), 16)), problem=found.group(2).strip())
    if "nearest allocation" in text and (found := _NEAREST.search(text)):
        distance, side, base, size = found.groups()
        near = NearestAllocation(
            _number(distance) if distance else None, side, Hex(int(base, 16)), _number(size)
        )
        return fault._replace(nearest=near)
    if found := _FRAME.match(text):
        side, frame = found.groups()
        if side == "Device" and len(fault.device_frames) < MAX_FRAMES:
            return fault._replace(device_frames=(*fault.device_frames, frame.strip()))
        if side == "Host" and len(fault.host_frames) < MAX_FRAMES:
            return fault._replace(host_frames=(*fault.host_frames, frame.strip()))
    return fault


def _place(fault: SanitizerFault, text: str) -> SanitizerFault:
    """``[clone KERNEL] FUNCTION+0xOFF in FILE:LINE``; the offset and the file may be missing."""
    kernel: str | None = None
    if old := _OLD.match(text):
        return fault._replace(
            kernel=old.group(4),
            function=old.group(4),
            offset=int(old.group(1), 16),
            file=old.group(2),
            source_line=int(old.group(3)) if old.group(3) else None,
        )
    if clone := _CLONE.match(text):
        kernel, text = clone.group(1), text[clone.end() :]
    offset = _OFFSET.search(text)
    place = _FILE.search(text, offset.end() if offset else 0)
    name = text[: offset.start()] if offset else text[: place.start()] if place else text
    if " at " in name:  # racecheck: "Error: Race reported between Write access at KERNEL+0x…"
        name = name.rsplit(" at ", 1)[1]
    name = name.strip()
    if fault.function is not None:
        return fault  # racecheck names the second access too; the first stands
    return fault._replace(
        kernel=kernel or name or None,
        function=name or None,
        offset=int(offset.group(1), 16) if offset else None,
        file=place.group(1) if place else None,
        source_line=int(place.group(2)) if place else None,
    )


def read_sanitizer(source: Iterable[bytes | str] | bytes | str) -> SanitizerLog:
    """Parse a whole text, or the lines of one. Raises nothing, whatever the bytes."""
    reader = SanitizerReader()
    for line in read_lines(source):
        reader.feed(line)
    return reader.result()
