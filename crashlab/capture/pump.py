"""Moves a program's output to where it went before, and records it. A program of its own.

It runs as a separate process (``python -I -S pump.py CONFIG``; only the standard library, nothing of
this package) for three reasons. A killed supervisor must not kill the program by SIGPIPE in the
middle of a GPU core dump. Reading a log for faults must not slow its writer. And one thread of
Python that only moves bytes keeps up with any program, which two threads that share an interpreter
do not.

CONFIG is JSON: ``streams`` {name: {source, sink, }} (file descriptors; sink -1: none), ``folder``,
``overflow`` (folders), ``attempt``, ``segment`` and ``cap`` (bytes), ``notify`` (a pipe's write end).
"""

from __future__ import annotations

import collections
import errno
import json
import os
import select
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

READ = 1 << 20
QUEUE_BYTES = 8 << 20
SINK_PATIENCE = 3.0
OVERFLOW_BYTES = 16 << 20
COALESCE = 0.01
COARSE = 1.0
FINE_BYTES = 32 << 20
NOTIFY_EVERY = 0.05


class Sinks:
    """Writes to the original stdout and stderr from a thread, so that a stopped terminal stops nobody.

    When a sink takes nothing for :data:`SINK_PATIENCE` seconds and the queue is full, bytes are left
    out there (never in the record) and counted.
    """

    def __init__(
        self, sinks: dict[str, int], gone: Callable[[str, int | None], None] = lambda name, error: None
    ) -> None:
        """``gone`` is told once of each sink that takes no more, with the errno, from the writing thread."""
        self.left_out = 0
        self._gone = gone
        self._sinks = sinks
        self._queue: collections.deque[tuple[str, bytes]] = collections.deque()
        self._bytes = 0
        self._stuck = False
        self._closed = False
        self._condition = threading.Condition()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def put(self, name: str, data: bytes) -> None:
        if self._sinks.get(name, -1) < 0:
            return
        with self._condition:
            if self._bytes > QUEUE_BYTES and not self._stuck:
                taken = self._condition.wait_for(lambda: self._bytes <= QUEUE_BYTES, SINK_PATIENCE)
                self._stuck = not taken
            if self._bytes > QUEUE_BYTES:
                self.left_out += len(data)
                return
            self._stuck = False
            self._queue.append((name, data))
            self._bytes += len(data)
            self._condition.notify_all()

    def close(self) -> None:
        """Wait, within limits, until everything is written."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
        self._thread.join(SINK_PATIENCE)

    def _work(self) -> None:
        while True:
            with self._condition:
                while not self._queue:
                    if self._closed:
                        return
                    self._condition.wait()
                name, data = self._queue.popleft()
            self._write(name, data)
            with self._condition:
                self._bytes -= len(data)
                self._condition.notify_all()

    def _write(self, name: str, data: bytes) -> None:
        view = memoryview(data)
        while view and self._sinks[name] >= 0:
            try:
                view = view[os.write(self._sinks[name], view) :]
            except BlockingIOError:  # somebody made the terminal non-blocking
                select.select([], [self._sinks[name]], [], 1.0)
            except OSError as error:  # the reader has gone: record on, show no more
                self._sinks[name] = -1
                self._gone(name, error.errno)


class Recorder:
    """Appends one stream to segment files; on a failing disk to the overflow folder."""

    def __init__(self, name: str, config: dict[str, Any]) -> None:
        self.name = name
        self.offset = 0
        self.lost = 0
        self._config = config
        self._file = -1
        self._start = 0
        self._kept: list[tuple[str, int]] = []
        self._overflowed = 0
        self._overflow = False

    def write(self, data: bytes) -> None:
        """Record; what no place takes is counted as lost."""
        view = memoryview(data)
        while view:
            if self._file < 0 and not self._open():
                self.lost += len(view)
                self.offset += len(view)
                return
            room = self._config["segment"] - (self.offset - self._start)
            if room <= 0:
                self._close()
                continue
            try:
                written = os.write(self._file, view[:room])
            except OSError:
                self._close()
                if self._overflow:
                    self._overflowed = OVERFLOW_BYTES
                self._overflow = True
                continue
            self.offset += written
            view = view[written:]
            if self._overflow:
                self._overflowed += written

    def _open(self) -> bool:
        if self._overflow and self._overflowed >= OVERFLOW_BYTES:
            return False
        folder = self._config["overflow" if self._overflow else "folder"]
        plus = f".+{self.offset}" if self.offset else ""
        path = os.path.join(folder, f"{self._config['attempt']:03d}.{self.name}{plus}.log")
        try:
            if self._overflow:
                _make_private(folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            self._file = os.open(path, flags, 0o644)
        except OSError:
            if self._overflow:
                self._overflowed = OVERFLOW_BYTES
                return False
            self._overflow = True
            return self._open()
        self._start = self.offset
        if not self._overflow:
            self._kept.append((path, self.offset))
            self._forget()
        return True

    def _forget(self) -> None:
        """Keep the first segment and the newest ones within the cap; remove those between."""
        most = max(3, self._config["cap"] // self._config["segment"])
        while len(self._kept) > most:
            path, _ = self._kept.pop(1)
            with suppress(OSError):
                os.unlink(path)

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _make_private(folder: str) -> None:
    """The overflow lies where everybody may write, and its name stands in the run directory: somebody else
    may have made it first. (crashlab.rundir.private does the same; this program imports no package.)"""
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        found = os.lstat(folder)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise OSError(errno.EPERM, "it is not a folder of this user alone", folder) from None


class Index:
    """When which bytes came, one JSON line for each piece; pieces of one moment become one line.

    Past :data:`FINE_BYTES` of its own size a moment is a second long, for each stream by itself: an
    index without a bound would in the end be larger than the output, which has one.
    """

    def __init__(self, path: str) -> None:
        self._held: dict[str, list[Any]] = {}
        self._bytes = 0
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError:
            self._file = -1

    def add(self, name: str, offset: int, count: int) -> None:
        now = time.monotonic()
        held = self._held.get(name)
        if held is not None and held[1] + held[2] == offset and now - held[0] < self._moment:
            held[2] += count
            return
        if self._coarse and held is None:
            self.settle()
        else:
            self.flush()
        self._held[name] = [now, offset, count]

    def settle(self) -> None:
        """Nothing comes just now: write what is held, unless its moment lasts."""
        if not self._coarse or any(
            time.monotonic() - held[0] >= self._moment for held in self._held.values()
        ):
            self.flush()

    def flush(self) -> None:
        """Write the held pieces."""
        held, self._held = self._held, {}
        for name, (at, offset, count) in held.items():
            line = f'{{"m":{at:.6f},"s":"{name}","o":{offset},"n":{count}}}\n'.encode()
            self._bytes += len(line)
            try:
                if self._file >= 0:
                    os.write(self._file, line)
            except OSError:  # without the index the order is lost, not the output
                os.close(self._file)
                self._file = -1

    @property
    def _coarse(self) -> bool:
        return self._bytes >= FINE_BYTES

    @property
    def _moment(self) -> float:
        return COARSE if self._coarse else COALESCE


class Pump:
    """The loop: read, record, note the time, pass on, tell the supervisor."""

    def __init__(self, config: dict[str, Any]) -> None:
        streams = config["streams"]
        self._sources = {streams[name]["source"]: name for name in streams}
        self._recorders = {name: Recorder(name, config) for name in streams}
        self._sinks = Sinks({name: streams[name]["sink"] for name in streams}, self._gone)
        self._index = Index(os.path.join(config["folder"], f"{config['attempt']:03d}.index.jsonl"))
        self._notify = config["notify"]
        self._notified = 0.0
        self._due = False
        self._poll = select.poll()
        for source in self._sources:
            self._poll.register(source, select.POLLIN)

    def run(self) -> None:
        """Until every writer has closed both streams."""
        while self._sources:
            ready = self._poll.poll(0)
            if not ready:
                self._index.settle()
                ready = self._poll.poll(int(NOTIFY_EVERY * 1000) if self._due else None)
            for source, _ in ready:
                self._take(source)
            self._tell()
        self._index.flush()
        self._sinks.close()
        recorders = self._recorders.items()
        self._say(
            {
                "bytes": {name: one.offset for name, one in recorders},
                "lost": {name: one.lost for name, one in recorders if one.lost},
                "left_out": self._sinks.left_out,
            }
        )

    def _take(self, source: int) -> None:
        try:
            data = os.read(source, READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._poll.unregister(source)
            del self._sources[source]
            return
        name = self._sources[source]
        recorder = self._recorders[name]
        self._index.add(name, recorder.offset, len(data))
        recorder.write(data)
        self._sinks.put(name, data)
        self._due = True

    def _tell(self) -> None:
        now = time.monotonic()
        if self._due and now - self._notified >= NOTIFY_EVERY:
            self._notified, self._due = now, False
            with suppress(OSError):
                os.write(self._notify, b"\n")

    def _gone(self, name: str, error: int | None) -> None:
        self._say({"gone": name, "errno": error})

    def _say(self, summary: dict[str, Any]) -> None:
        with suppress(OSError):  # one write of less than a page: it comes whole, whichever thread writes it
            os.write(self._notify, json.dumps(summary).encode() + b"\n")


def main() -> None:
    """Run until the streams end; signals of the terminal and of the supervisor do not concern us."""
    for number in (
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGPIPE,
        signal.SIGUSR1,
        signal.SIGQUIT,
    ):
        signal.signal(number, signal.SIG_IGN)
    config = json.loads(sys.argv[1])
    os.set_blocking(config["notify"], False)
    Pump(config).run()


if __name__ == "__main__":
    main()
