"""Everything that is seen of a running program, written down before anybody acts on it."""

from __future__ import annotations

import os
import queue
import time
from typing import Any

from crashlab.capture import nvml
from crashlab.capture.dumps import SETTLED, DumpWatch
from crashlab.capture.follow import StreamFollower
from crashlab.capture.kmsg import KernelFollower
from crashlab.capture.live import DRIVER, Finding, LiveReader
from crashlab.capture.patience import Sight
from crashlab.capture.recording import Recording
from crashlab.capture.samples import LibrarySampler, Sample
from crashlab.capture.tree import ProcessTree
from crashlab.capture.trigger import pipes
from crashlab.rundir import layout, redact
from crashlab.rundir.writer import RunWriter

_READ_PER_LOOK = 32 << 20
_LAST_SECONDS = 10.0
"""After minutes of output at full speed, gigabytes would be waiting: searching 4 GiB takes two minutes."""
_LAST_BYTES, _READ_ON = 16 << 20, 4 << 20
_MAX_PROCESS_EVENTS = 4000


class Watch:
    """One attempt's observers. :meth:`look` asks all of them once and writes events."""

    def __init__(
        self,
        writer: RunWriter,
        attempt: int,
        recording: Recording,
        tree: ProcessTree,
        dumps: DumpWatch,
        sampler: LibrarySampler,
        overflow: str,
        kernel: KernelFollower,
        gpu_seconds: float = 10.0,
        *,
        listens: tuple[str | None, str] = (None, "/"),
    ) -> None:
        """``listens``: the pattern of CUDA_COREDUMP_PIPE and the folder that it is relative to."""
        self.live = LiveReader()
        self.tree = tree
        self.dumps = dumps
        self.xids: list[dict[str, Any]] = []
        self.kernel_killed = 0
        self._writer = writer
        self._attempt = attempt
        self._recording = recording
        self._sampler = sampler
        folders = (writer.file(layout.OUTPUT), overflow)
        self._streams = {name: StreamFollower(folders, attempt, name) for name in layout.STREAMS}
        self._kernel = kernel
        self._told = 0
        self._looks = 0
        self._process_events = 0
        self._listens = listens
        self._contexts: frozenset[str] = frozenset()
        self._from_gpu: queue.SimpleQueue[tuple[str, dict[str, Any]]] = queue.SimpleQueue()
        self._gpu = nvml.Sampler(lambda kind, values: self._from_gpu.put((kind, values)), gpu_seconds)

    def start(self) -> None:
        """Begin what has threads of its own."""
        self._gpu.start()

    def event(self, kind: str, **fields: Any) -> None:
        """Write an event of this attempt."""
        self._writer.event(kind, attempt=self._attempt, **fields)

    def look(self, now: float) -> list[Finding]:
        """One look at everything; the failures that the output newly tells of."""
        self._looks += 1
        heard = self._recording.drain()
        # The pump tells of new output; a look in between costs little and trusts nobody.
        found = self._read_output(_READ_PER_LOOK) if heard or self._looks % 8 == 0 else []
        self._look_at_dumps(now)
        context = self._new_context()
        if found or context or self.tree.due(now):
            self._look_at_tree(now, urgent=context or any(one.kind == DRIVER for one in found))
        self._look_at_kernel()
        self._look_at_gpu()
        return found

    def sight(self) -> Sight:
        """What a decision about waiting for dumps needs."""
        announced, growing = self.live.dumping, len(self.dumps.growing)
        return Sight(
            announced=announced,
            files=growing,
            size=sum(one.bytes for one in self.dumps.files.values()),
            alive=(announced or growing > 0) and bool(self.tree.alive()),
            lines=self.live.driver_lines,
        )

    def last_words(self, seconds: float = _LAST_SECONDS) -> int:
        """Read the output to its end after the program has gone. After so many seconds only the last 16 MiB
        of each stream are read; how many bytes were left out (the post-mortem looks for telling lines there).
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if not self._read_on():
                return 0
        left_out = sum(stream.skip(_LAST_BYTES) for stream in self._streams.values())
        for _ in range(_LAST_BYTES // _READ_ON + 1):  # somebody may still be writing: not for ever
            if not self._read_on():
                break
        return left_out

    def _read_on(self) -> bool:
        """Whether there was more to read."""
        before = [stream.offset for stream in self._streams.values()]
        self._read_output(_READ_ON)
        return before != [stream.offset for stream in self._streams.values()]

    def close(self) -> None:
        """Stop the observers."""
        self._look_at_kernel()
        self._look_at_gpu()
        self._gpu.stop()
        for stream in self._streams.values():
            stream.close()

    def samples(self) -> list[Sample]:
        """The libraries of every CUDA process that was seen."""
        return list(self._sampler.latest.values())

    def _read_output(self, most: int) -> list[Finding]:
        found: list[Finding] = []
        for name, stream in self._streams.items():
            for data in stream.read(most):
                found += self.live.feed(name, data)
        for one in found:
            self.event("finding", what=one.kind, text=one.text, stream=one.stream, pid=one.pid)
        return found

    def _look_at_dumps(self, now: float) -> None:
        for one in self.dumps.scan(now, self.tree.open_files):
            path = self.short(one.path)
            if one.state == SETTLED:
                self.event("dump", path=path, state=one.state, bytes=one.bytes, pid=one.pid)
            elif one.first_seen == now:
                self.event("dump", path=path, state=one.state, bytes=one.bytes, pid=one.pid)
                self._look_at_tree(now, urgent=True)

    def _new_context(self) -> bool:
        """Whether a process has begun to listen for dump requests: it has just made its first CUDA
        context, so its libraries are loaded. After a fault it is too late to look: a light dump takes
        a millisecond, and the memory map is gone before the driver has let go of the GPU (H200, driver 580).
        """
        before, self._contexts = self._contexts, frozenset(path for path, _ in pipes(*self._listens))
        return not self._contexts <= before

    def _look_at_tree(self, now: float, *, urgent: bool) -> None:
        change = self.tree.scan(now)
        for proc in change.started:
            self._process_event(
                "process", pid=proc.pid, ppid=proc.ppid, name=proc.name, argv=redact.command(proc.argv)[:64]
            )
        for proc in change.gone:
            self._process_event("process-gone", pid=proc.pid, name=proc.name)
        for pid, code in self.tree.reaped:
            self._process_event("orphan-reaped", pid=pid, code=code)
        self.tree.reaped.clear()
        for sample in self._sampler.look(self.tree.known.values(), now, all_now=urgent):
            self.event(
                "libraries",
                pid=sample.pid,
                name=sample.name,
                libraries=[one._asdict() for one in sample.libraries],
                variables=dict(sample.variables),
            )

    def _process_event(self, kind: str, **fields: Any) -> None:
        self._process_events += 1
        if self._process_events <= _MAX_PROCESS_EVENTS:
            self.event(kind, **fields)
        elif self._process_events == _MAX_PROCESS_EVENTS + 1:
            self.event("process-events-cut", after=_MAX_PROCESS_EVENTS)

    def _look_at_kernel(self) -> None:
        lines = self._kernel.read()
        if not lines:
            return
        text = "".join(f"{line}\n" for line in lines)
        try:
            with open(self._writer.file(layout.KERNEL_LOG), "a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            self._writer.problem(f"{layout.KERNEL_LOG} cannot be written: {error.strerror}")
            self.event("kernel-log", text=text[:4000])
        log = self._kernel.reader.result()
        for xid in log.xids[self._told :]:
            self.xids.append({"code": xid.event.code, "pid": xid.event.pid, "source": "kernel log"})
            self.event("xid", code=xid.event.code, pid=xid.event.pid, text=xid.event.text)
        self._told = len(log.xids)
        self.kernel_killed = len(log.killed)

    def _look_at_gpu(self) -> None:
        while True:
            try:
                kind, values = self._from_gpu.get_nowait()
            except queue.Empty:
                return
            if kind == "sample":
                self._writer.gpu_sample(values)
            elif kind == "xid":
                self.xids.append({**values, "source": "nvml"})
                self.event("xid", source="nvml", **values)
            else:
                self.event(kind, **values)

    def short(self, path: str) -> str:
        """Relative inside the run directory, else whole."""
        inside = os.path.relpath(path, self._writer.path)
        return path if inside.startswith("..") else inside
