"""Dumps while their lines are still coming in: which line continues which dump, and what it adds."""

from __future__ import annotations

from crashlab.facts import Hex
from crashlab.logs.driver_facts import PHASES, DriverDump, DriverException, DriverFrame, LaneStack
from crashlab.logs.driver_lines import DriverEvent
from crashlab.logs.text import Line

MAX_EXCEPTIONS = 1024
MAX_STACKS = 64
MAX_FRAMES = 512
MAX_NOTES = 64

_RANK = {name: index for index, name in enumerate(PHASES)}
_COLLECTING = _RANK["collecting"]
_MEMORY = _RANK["global-memory"]
# Which phase a message announces; details of an exception belong to `collecting`.
_PHASE_OF = {"start": 0, **{name: index for name, index in _RANK.items() if index > _COLLECTING}}
_PHASE_OF["percent"] = _RANK["global-memory-percent"]

EXACT = 8
"""A fit from this value on means: this line is exactly what the dump would print next."""


def _int(text: str | None) -> int | None:
    return int(text) if text is not None else None


def _hex(text: str | None) -> Hex | None:
    return Hex(int(text, 16)) if text is not None else None


class OpenException:
    """An exception block whose detail lines are still arriving."""

    __slots__ = ("fields", "seen_at", "stacks")

    def __init__(self, event: DriverEvent, line: int, seen_at: list[tuple[OpenDump, int, int]]) -> None:
        name, code = event.groups
        self.fields = DriverException(_int(code), name or "", time=event.time, line=line)
        self.stacks: list[LaneStack] = []
        # The open dumps with (devices, SMs) collected when the exception was printed.
        self.seen_at = seen_at

    @property
    def waiting(self) -> bool:
        """True while more lines of this block must follow, so that its dump prints nothing else."""
        return self.fields.pc is None or (not self.fields.warp_exited and not self.stacks)

    def lacks(self, kind: str) -> bool:
        """True if a detail of this kind has not been seen yet."""
        if kind in ("warp", "warp-exited"):
            return self.fields.warp is None and not self.fields.warp_exited
        return {"device": self.fields.device, "on-sm": self.fields.sm, "pc": self.fields.pc}[kind] is None

    def take(self, event: DriverEvent) -> None:
        """Add one detail line."""
        first = event.groups[0] if event.groups else None
        if event.kind == "device":
            self.fields = self.fields._replace(device=_int(first))
        elif event.kind == "on-sm":
            self.fields = self.fields._replace(sm=_int(first))
        elif event.kind == "warp":
            self.fields = self.fields._replace(warp=_int(first))
        elif event.kind == "warp-exited":
            self.fields = self.fields._replace(warp_exited=True)
        else:
            self.fields = self.fields._replace(pc=_hex(first))

    def home(self) -> OpenDump | None:
        """The dump that stood at this device and SM when the exception was printed, if just one did."""
        place = (self.fields.device, self.fields.sm)
        fitting = [dump for dump, devices, sms in self.seen_at if (devices, sms) == place]
        return fitting[0] if len(fitting) == 1 else None

    def push(self, stack: LaneStack) -> None:
        """Begin another stack of this exception."""
        if len(self.stacks) < MAX_STACKS:
            self.stacks.append(stack)

    def frame(self, frame: DriverFrame) -> None:
        """Add a frame to the last stack."""
        if self.stacks and len(self.stacks[-1].frames) < MAX_FRAMES:
            last = self.stacks[-1]
            self.stacks[-1] = last._replace(frames=(*last.frames, frame))

    def build(self) -> DriverException:
        """The finished row."""
        return self.fields._replace(stacks=tuple(self.stacks))


def stack_of(event: DriverEvent) -> LaneStack:
    """The header of a printed stack."""
    return LaneStack(_hex(event.groups[0]), _hex(event.groups[1]), ())


def frame_of(event: DriverEvent) -> DriverFrame:
    """One printed frame."""
    level, pc, name = event.groups
    return DriverFrame(int(level or 0), _hex(pc) or Hex(0), None if name in (None, "", "[Unknown]") else name)


class OpenDump:
    """A dump in progress on one stream."""

    def __init__(self, line: Line, time: str | None) -> None:
        self.process, self.pid = line.process, line.pid
        self.first_line = self.last_line = line.number
        self.started, self.ended = time, time
        self.phase = 0
        self.last_sm = self.sms_collected = self.devices_collected = 0
        self.sms_total: int | None = None
        self.devices_total: int | None = None
        self.sm_state: str | None = None
        self.file: str | None = None
        self.cwd: str | None = None
        self.global_bytes: int | None = None
        self.percent: int | None = None
        self.took: int | None = None
        self.exceptions: list[OpenException] = []
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.interleaved = False

    def fits(self, event: DriverEvent) -> int:
        """How well the message continues this dump: 0 not at all, EXACT and above exactly."""
        kind = event.kind
        if kind in ("problem", "other"):
            return 2
        if kind == "start":
            return 0
        if kind in ("sm", "device-done", "exception"):
            return self._collects(event) if self.phase <= _COLLECTING else 0
        if kind == "percent":
            return self._percent(int(event.groups[0] or 0))
        wanted = _PHASE_OF[kind]
        if self.phase >= wanted:
            return 0
        if wanted == _COLLECTING + 1:
            done = self.devices_total is not None and self.devices_collected == self.devices_total
            return EXACT if done else 2
        # Percentages come only when there is memory to write; metadata only since driver 565.
        skips = wanted == _RANK["device-table"] and self.phase == _MEMORY
        return EXACT if self.phase == wanted - 1 or skips else 2

    def _collects(self, event: DriverEvent) -> int:
        blocked = bool(self.exceptions) and self.exceptions[-1].waiting
        if event.kind == "exception":
            return 1 if blocked else EXACT
        index, total = int(event.groups[0] or 0), int(event.groups[1] or 0)
        if event.kind == "device-done":
            if self.devices_collected != index - 1 or self.devices_total not in (None, total):
                return 0
            return EXACT if self.last_sm == self.sms_total and not blocked else 2
        if self.sms_total not in (None, total) or index <= self.last_sm:
            return 0
        same = self.sm_state in (None, event.groups[2])
        if index > self.last_sm + 1 or blocked:
            return 3 if same and not blocked else 1
        return (EXACT + 1 if self.sm_state is not None else EXACT) if same else 4

    def _percent(self, value: int) -> int:
        if self.phase not in (_MEMORY, _RANK["global-memory-percent"]) or value <= (self.percent or 0):
            return 0
        return EXACT if self.global_bytes != 0 else 2

    def take(self, event: DriverEvent, line: Line) -> None:
        """Apply one message (exceptions are added by :meth:`add`)."""
        self.last_line = line.number
        self.ended = event.time or self.ended
        kind, first = event.kind, event.groups[0] if event.groups else None
        if kind in ("problem", "other"):
            kept = self.problems if kind == "problem" else self.notes
            if len(kept) < MAX_NOTES:
                kept.append(event.text)
            return
        self.phase = max(self.phase, _PHASE_OF.get(kind, _COLLECTING))
        if kind == "sm":
            self.last_sm, self.sms_total = int(first or 0), _int(event.groups[1])
            self.sm_state = event.groups[2]
            self.sms_collected += 1
        elif kind == "device-done":
            self.devices_collected, self.devices_total = int(first or 0), _int(event.groups[1])
            self.last_sm, self.sm_state = 0, None
            if self.devices_collected != self.devices_total:
                self.sms_total = None
        elif kind == "file-opened":
            self.file = first
        elif kind == "working-directory":
            self.cwd = first
        elif kind == "global-memory":
            self.global_bytes = _int(first)
        elif kind == "percent":
            self.percent = _int(first)
        elif kind == "done":
            self.took = _int(first)

    def add(self, exception: OpenException) -> None:
        """Take over an exception block."""
        if len(self.exceptions) < MAX_EXCEPTIONS:
            self.exceptions.append(exception)

    def build(self) -> DriverDump:
        """The finished row."""
        return DriverDump(
            process=self.process,
            pid=self.pid,
            first_line=self.first_line,
            last_line=self.last_line,
            started=self.started,
            ended=self.ended,
            exceptions=tuple(exception.build() for exception in self.exceptions),
            phase=PHASES[self.phase],
            complete=self.phase == _RANK["done"],
            sms_collected=self.sms_collected,
            sms_total=self.sms_total,
            devices_collected=self.devices_collected,
            devices_total=self.devices_total,
            file=self.file,
            working_directory=self.cwd,
            global_bytes=self.global_bytes,
            percent=self.percent,
            took_seconds=self.took,
            problems=tuple(self.problems),
            notes=tuple(self.notes),
            interleaved=self.interleaved,
        )
