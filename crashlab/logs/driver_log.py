"""The CUDA driver's coredump progress log (``CUDA_COREDUMP_SHOW_PROGRESS=1``), any number of dumps.

The driver writes to stderr of the faulting process; servers may prefix the lines, several processes
may dump at once into one stream, and the lines carry no process id. Each line is given to the open
dump that would print it next: SM 7 follows SM 6, an exception on SM 124 is printed when 124 SMs of
its device are done, its stack comes before the next SM, frame 0 lies just past the PC.
"""

from __future__ import annotations

from collections.abc import Iterable

from crashlab.logs.asserts import AssertCollector
from crashlab.logs.driver_facts import DriverDump, DriverLog, LaneStack
from crashlab.logs.driver_lines import MARK, DriverEvent, events
from crashlab.logs.driver_state import EXACT, MAX_NOTES, OpenDump, OpenException, frame_of, stack_of
from crashlab.logs.text import Line, read_lines

MAX_DUMPS = 512
_MAX_OPEN = 64
_MAX_PENDING = 64
_NEAR = 64 * 1024
_DETAILS = frozenset(("device", "on-sm", "warp", "warp-exited", "pc"))
# A program's own "coredump: …" line must not open a dump: only the driver's sequence may.
_OPENERS = frozenset(("start", "sm", "exception", "device-done", "layout", "file-opened"))

_Key = tuple["str | None", "int | None"]


class _Stream:
    """What one writer (one prefix) has open: dumps in the order of their last word, and exceptions."""

    __slots__ = ("dumps", "pending", "stack")

    def __init__(self) -> None:
        self.dumps: list[OpenDump] = []
        self.pending: list[OpenException] = []
        # A stack header whose frame 0, which tells the exception, has not come yet.
        self.stack: LaneStack | None = None

    def best(self, event: DriverEvent, least: int) -> OpenDump | None:
        """The dump that the event continues best; among equals the one that spoke last."""
        found: OpenDump | None = None
        rank = least - 1
        for dump in reversed(self.dumps):
            if (fit := dump.fits(event)) > rank:
                found, rank = dump, fit
        return found


class DriverLogReader:
    """Feed lines as they come; :meth:`result` may be asked at any time. Memory is bounded."""

    def __init__(self) -> None:
        self._streams: dict[_Key, _Stream] = {}
        self._all: list[OpenDump] = []
        self._problems: list[str] = []
        self._asserts = AssertCollector()
        self._dropped = 0

    @property
    def dumping(self) -> bool:
        """True while a dump has begun and not ended: nothing may be killed now."""
        return bool(self._streams)

    def feed(self, line: Line) -> bool:
        """Read one line; True if it was the driver's (or a device assertion)."""
        if MARK not in line.text and "coredump flag" not in line.text:
            return self._asserts.feed(line)
        used = False
        for event in events(line.text):
            used = self._take(event, line) or used
        return used

    def result(self) -> DriverLog:
        """What was read so far; dumps in the order in which they began."""
        return DriverLog(
            dumps=tuple(dump.build() for dump in self._all),
            asserts=self._asserts.result(),
            problems=tuple(self._problems),
            dropped=self._dropped + self._asserts.dropped,
        )

    def _take(self, event: DriverEvent, line: Line) -> bool:
        key = (line.process, line.pid)
        if event.kind in _DETAILS:
            return self._detail(event, key)
        if event.kind in ("stack", "frame"):
            return self._stack(event, key)
        key, dump = self._choose(event, key)
        if dump is None:
            if event.kind not in _OPENERS:
                return self._outside(event)
            dump = self._begin(event, line, key)
        dump.take(event, line)
        if (stream := self._streams.get(key)) is not None:
            if event.kind == "exception":
                _pend(stream, dump, event, line)
            _reorder(stream, dump)
            if event.kind == "done" or _gave_up(event):
                self._end(key, stream, dump)
        return True

    def _choose(self, event: DriverEvent, key: _Key) -> tuple[_Key, OpenDump | None]:
        """The best continuation on the line's own stream.

        A server that was just writing its prefix can lend it to the driver's line (seen in a real
        vLLM log), so a stream without a dump may continue another's, if it fits exactly.
        """
        if own := self._streams.get(key):
            return key, own.best(event, 1)
        for other, stream in self._streams.items():
            if dump := stream.best(event, EXACT):
                return other, dump
        return key, None

    def _begin(self, event: DriverEvent, line: Line, key: _Key) -> OpenDump:
        dump = OpenDump(line, event.time)
        if len(self._all) >= MAX_DUMPS:
            self._dropped += 1
        elif key in self._streams or len(self._streams) < _MAX_OPEN:
            stream = self._streams.setdefault(key, _Stream())
            stream.dumps.append(dump)
            del stream.dumps[:-_MAX_OPEN]
            self._all.append(dump)
        return dump

    def _end(self, key: _Key, stream: _Stream, dump: OpenDump) -> None:
        stream.dumps.remove(dump)
        stream.pending = [one for one in stream.pending if one not in dump.exceptions]
        if not stream.dumps:
            del self._streams[key]

    def _of(self, key: _Key) -> Iterable[_Stream]:
        return (self._streams[key],) if key in self._streams else tuple(self._streams.values())

    def _detail(self, event: DriverEvent, key: _Key) -> bool:
        for stream in self._of(key):
            for exception in reversed(stream.pending):
                if exception.lacks(event.kind):
                    exception.take(event)
                    _rehome(stream, exception)
                    return True
        return False

    def _stack(self, event: DriverEvent, key: _Key) -> bool:
        for stream in self._of(key):
            if not stream.pending:
                continue
            if event.kind == "stack":
                stream.stack = stack_of(event)
                return True
            frame = frame_of(event)
            if stream.stack is not None:
                owner = _owner(stream.pending, frame.pc)
                owner.push(stream.stack)
                stream.stack = None
                # Further frames go to the exception that was served last.
                stream.pending.remove(owner)
                stream.pending.append(owner)
            stream.pending[-1].frame(frame)
            return True
        return False

    def _outside(self, event: DriverEvent) -> bool:
        if event.kind != "problem":
            return False
        if len(self._problems) < MAX_NOTES and event.text not in self._problems:
            self._problems.append(event.text)
        return True


def _pend(stream: _Stream, dump: OpenDump, event: DriverEvent, line: Line) -> None:
    standing = [(one, one.devices_collected, one.last_sm) for one in stream.dumps]
    exception = OpenException(event, line.number, standing)
    dump.add(exception)
    stream.pending.append(exception)
    del stream.pending[:-_MAX_PENDING]


def _reorder(stream: _Stream, dump: OpenDump) -> None:
    """Keep the dumps in the order of their last word; note when two take turns."""
    if dump in stream.dumps and (last := stream.dumps[-1]) is not dump:
        last.interleaved = dump.interleaved = True
        stream.dumps.remove(dump)
        stream.dumps.append(dump)


def _rehome(stream: _Stream, exception: OpenException) -> None:
    """Move an exception to the dump that stood at its SM, now that the SM is known."""
    home = exception.home() if len(exception.seen_at) > 1 else None
    if home is None or exception in home.exceptions:
        return
    for dump in stream.dumps:
        if exception in dump.exceptions:
            dump.exceptions.remove(exception)
    home.add(exception)


def _owner(pending: list[OpenException], pc: int) -> OpenException:
    """Whose stack it is: the oldest without one whose PC lies just before frame 0, else the oldest
    without one, else the latest."""
    without = [one for one in pending if not one.stacks and not one.fields.warp_exited]
    for one in without:
        if one.fields.pc is not None and 0 <= pc - one.fields.pc <= _NEAR:
            return one
    return without[0] if without else pending[-1]


def _gave_up(event: DriverEvent) -> bool:
    # Driver 580.159 prints this instead of writing, and then lets the process go on.
    return event.kind == "problem" and event.text.startswith("ERROR: Failed to open")


def read_driver_log(source: Iterable[bytes | str] | bytes | str) -> DriverLog:
    """Parse a whole text, or the lines of one. Raises nothing, whatever the bytes."""
    reader = DriverLogReader()
    for line in read_lines(source):
        reader.feed(line)
    return reader.result()


def dumps_with_exceptions(log: DriverLog) -> tuple[DriverDump, ...]:
    """The dumps that name an exception, earliest first: the first is the candidate origin."""
    return tuple(dump for dump in log.dumps if dump.exceptions)
