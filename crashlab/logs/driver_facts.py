"""What the CUDA driver's coredump progress log says, as rows."""

from __future__ import annotations

from typing import NamedTuple

from crashlab.facts import Hex
from crashlab.logs.asserts import DeviceAssert

# The phases in the order in which the driver goes through them (driver 580; older ones skip some).
PHASES = (
    "starting",
    "collecting",
    "layout",
    "layout-done",
    "file-opened",
    "working-directory",
    "global-memory",
    "global-memory-percent",
    "device-table",
    "metadata",
    "finalizing",
    "written",
    "done",
)


class DriverFrame(NamedTuple):
    """One frame of a GPU stack. ``name`` is the enclosing **kernel** as the driver names it: mangled,
    or plain in ``-G`` builds, or None for ``[Unknown]``. Frame 0's ``pc`` is where the lanes stand,
    which is past the faulting instruction."""

    level: int
    pc: Hex
    name: str | None


class LaneStack(NamedTuple):
    """One printed stack with the lanes it belongs to."""

    active: Hex | None
    valid: Hex | None
    frames: tuple[DriverFrame, ...]


class DriverException(NamedTuple):
    """One ``Detected an exception`` block.

    ``name`` is the driver's own identifier (``CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS``). ``pc`` is the
    faulting instruction. ``warp_exited`` True: the warp had retired, so there is neither a warp
    number nor a stack.
    """

    code: int | None
    name: str
    device: int | None = None
    sm: int | None = None
    warp: int | None = None
    warp_exited: bool = False
    pc: Hex | None = None
    stacks: tuple[LaneStack, ...] = ()
    time: str | None = None
    line: int | None = None


class DriverDump(NamedTuple):
    """One dump that one process wrote.

    ``process`` and ``pid`` come from a server's line prefix, which most forked workers lack.
    ``complete``: "All done" was seen; only then is the file whole. ``phase`` is the last one
    reached (see :data:`PHASES`); ``truncated_after`` is that phase where the log ends early.
    ``interleaved``: another dump was open on the same unmarked stream, so lines were told apart by
    their sequence and may be mixed up. ``problems`` are the driver's errors and warnings.
    """

    process: str | None
    pid: int | None
    first_line: int
    last_line: int
    started: str | None
    ended: str | None
    exceptions: tuple[DriverException, ...]
    phase: str
    complete: bool
    sms_collected: int
    sms_total: int | None
    devices_collected: int
    devices_total: int | None
    file: str | None
    working_directory: str | None
    global_bytes: int | None
    percent: int | None
    took_seconds: int | None
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    interleaved: bool

    @property
    def trigger(self) -> str | None:
        """``exception``; ``none-named`` when collection ended without one; None when it did not end.

        A dump that a user triggered and one of a ``__trap()`` look the same here: neither names an
        exception (seen with driver 580).
        """
        if self.exceptions:
            return "exception"
        return "none-named" if PHASES.index(self.phase) > PHASES.index("collecting") else None


class DriverLog(NamedTuple):
    """A whole log. ``problems`` were printed outside any dump (unknown flags, at start-up)."""

    dumps: tuple[DriverDump, ...] = ()
    asserts: tuple[DeviceAssert, ...] = ()
    problems: tuple[str, ...] = ()
    dropped: int = 0
