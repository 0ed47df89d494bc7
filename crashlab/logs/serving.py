"""vLLM, SGLang and llama.cpp server logs as one story: what died, when, what was blamed, what ran.

Feed lines as they come; the reader also runs the driver-log and CUDA-error readers over them, so one
pass over a log of any size tells everything. Memory is bounded; nothing here judges a kernel.
"""

from __future__ import annotations

from collections.abc import Iterable

from crashlab.logs.cuda_errors import CudaErrorReader
from crashlab.logs.driver_log import DriverLogReader
from crashlab.logs.header import Header, split_header
from crashlab.logs.keyvalues import key_values
from crashlab.logs.serving_facts import Backend, GraphState, HttpCounts, ServingStory, StoryEvent, Throughput
from crashlab.logs.serving_lines import (
    backend_of,
    event_of,
    graph_state_of,
    http_of,
    is_override,
    throughput_of,
)
from crashlab.logs.serving_story import Material, tell
from crashlab.logs.text import Line, read_lines
from crashlab.logs.versions import VersionCollector

MAX_EVENTS = 1024
MAX_BACKENDS = 128
MAX_OVERRIDES = 128
_KEPT_THROUGHPUT = 32
_KEPT_ALIKE = 4
_MAX_ENGINES = 256
_MAX_TEXT = 400

_CONFIG_MARKS = (" with config: ", "server_args=ServerArgs(")


class ServingReader:
    """Feed lines; :meth:`result` ends the reading and tells the story."""

    def __init__(self) -> None:
        self._driver = DriverLogReader()
        self._errors = CudaErrorReader()
        self._versions = VersionCollector()
        self._events: dict[tuple[str, str | None, int | None], list[StoryEvent]] = {}
        self._count = 0
        self._server: str | None = None
        self._pids: dict[str, int] = {}
        self._config: dict[str, str] = {}
        self._backends: dict[tuple[str, str], Backend] = {}
        self._overrides: dict[str, None] = {}
        self._graphs: GraphState | None = None
        self._throughput: list[Throughput] = []
        # By engine: the first line of 0 tokens/s with requests running, and how many there were.
        self._stalls: dict[int | None, tuple[Throughput, int]] = {}
        self._http = HttpCounts()

    @property
    def dumping(self) -> bool:
        """True while the driver writes a dump: nothing may be killed now."""
        return self._driver.dumping

    def feed(self, line: Line) -> bool:
        """Read one line; True if it told something."""
        if line.process is not None and line.pid is not None and len(self._pids) < 256:
            self._pids.setdefault(line.process, line.pid)
        if "HTTP/" in line.text and (found := http_of(line.text)) is not None:
            self._access(line, *found)
            return True
        if self._driver.feed(line):
            return True
        head = split_header(line.text)
        if self._errors.feed(line, head):
            self._event(line, head)  # "Scheduler hit an exception: Traceback" is both
            return True
        return self._other(line, head)

    def result(self) -> ServingStory:
        """The story so far."""
        errors = self._errors.result()
        driver = self._driver.result()
        return tell(
            Material(
                server=self._server,
                events=tuple(sorted(self._all_events(), key=lambda event: event.line)),
                pids=self._pids,
                environment=self._versions.facts,
                config=self._config,
                backends=tuple(self._backends.values()),
                overrides=tuple(self._overrides),
                graphs=self._graphs,
                throughput=tuple(self._throughput),
                stalled=self._first_stall(),
                zero_lines=max((count for _, count in self._stalls.values()), default=0),
                http=self._http,
                driver=driver,
                errors=errors,
            )
        )

    def _other(self, line: Line, head: Header) -> bool:
        text = head.text
        if numbers := throughput_of(text, line.number, head.time):
            self._statistics(numbers)
            return True
        used = self._versions.feed(line, text)
        used = self._event(line, head) or used
        for mark in _CONFIG_MARKS:
            if mark in text and not self._config:
                self._config = key_values(text[text.index(mark) + len(mark) :])
        if state := graph_state_of(text):
            used = True
            # What was done outranks what was configured (vLLM prints its configuration again at death).
            if state[2] or self._graphs is None:
                self._graphs = GraphState(state[0], state[1], line.number)
        if is_override(text) and len(self._overrides) < MAX_OVERRIDES:
            self._overrides.setdefault(text.strip()[:_MAX_TEXT])
            used = True
        if (backend := backend_of(text, line.number)) and len(self._backends) < MAX_BACKENDS:
            self._backends.setdefault((backend.role, backend.name), backend)
            used = True
        return used

    def _event(self, line: Line, head: Header) -> bool:
        found = event_of(head.text)
        if found is None:
            return False
        self._server = self._server or found.server
        key = (found.kind, line.process, line.pid)
        row = StoryEvent(
            found.kind,
            line.number,
            head.text.strip()[:_MAX_TEXT],
            head.time or line.stamp,
            line.process,
            line.pid,
        )
        # A server repeats itself for hours (shared memory silence): the first ones and a count do.
        same = self._events.get(key, [])
        if same and (len(same) >= _KEPT_ALIKE or self._count >= MAX_EVENTS):
            same[-1] = same[-1]._replace(times=same[-1].times + 1)
        elif self._count < MAX_EVENTS:
            self._count += 1
            self._events.setdefault(key, same).append(row)
        return True

    def _all_events(self) -> Iterable[StoryEvent]:
        for same in self._events.values():
            yield from same

    def _statistics(self, numbers: Throughput) -> None:
        idle = not numbers.generation and not numbers.prompt
        if not (idle and numbers.running):
            # Progress, or nothing in flight: a hung engine's gauges would not have moved.
            self._stalls.pop(numbers.engine, None)
        elif numbers.engine in self._stalls or len(self._stalls) < _MAX_ENGINES:
            first, count = self._stalls.get(numbers.engine, (numbers, 0))
            self._stalls[numbers.engine] = (first, count + 1)
        self._throughput.append(numbers)
        # The first ones and the last ones: the middle of a long run is all alike.
        if len(self._throughput) > _KEPT_THROUGHPUT:
            del self._throughput[_KEPT_THROUGHPUT // 4]

    def _first_stall(self) -> Throughput | None:
        return min((first for first, _ in self._stalls.values()), key=lambda one: one.line, default=None)

    def _access(self, line: Line, method: str, path: str, status: int) -> None:
        http, good = self._http, status < 500
        if path.startswith("/health"):
            after = http.health_ok_after_stall + (1 if good and self._stalls else 0)
            self._http = http._replace(
                health_ok=http.health_ok + good,
                health_failed=http.health_failed + (not good),
                health_ok_after_stall=after,
            )
        elif method == "POST":
            if good:
                self._http = http._replace(ok=http.ok + 1, last_ok=line.number)
            else:
                first = http.first_failed if http.first_failed is not None else line.number
                self._http = http._replace(failed=http.failed + 1, first_failed=first)


def read_serving(source: Iterable[bytes | str] | bytes | str) -> ServingStory:
    """The story of a whole log. Raises nothing, whatever the bytes."""
    reader = ServingReader()
    for line in read_lines(source):
        reader.feed(line)
    return reader.result()
