"""What an attempt of a soak writes down: events, one line a request, samples of the server's metrics."""

from __future__ import annotations

from typing import Any

from crashlab.rundir import layout
from crashlab.rundir.journal import stamp
from crashlab.rundir.writer import RunWriter
from crashlab.soak import progress

METRICS_CAP = 16 << 20
_MOMENTS = ("soak-stall", "soak-ending")
_STATES = (progress.FAILING, progress.STALLED, progress.DUMPING, progress.DEAD)


class LoadLogs:
    """The logs are bounded: a day under load must not fill a disk. What was written around a fault, a
    stall or the end of an attempt stays."""

    def __init__(self, writer: RunWriter, attempt: int) -> None:
        self._writer, self._attempt = writer, attempt
        self._requests = writer.log(layout.REQUESTS)
        self._metrics = writer.log(layout.METRICS, METRICS_CAP)

    def request(self, row: dict[str, Any]) -> None:
        """A line of the request log; the one with ``record`` names the load, and heads each further part."""
        if self._attempt > 1:
            row = {**row, "attempt": self._attempt}
        if "record" in row:
            self._requests.heading = row
        self._requests.append(row)

    def sample(self, row: dict[str, Any]) -> None:
        """A line of the metrics log."""
        self._metrics.append({**stamp(), "attempt": self._attempt, **row})

    def event(self, kind: str, fields: dict[str, Any]) -> None:
        """An event of the run; at those that matter the logs are told to keep what surrounds them."""
        self._writer.event(kind, attempt=self._attempt, **fields)
        if kind in _MOMENTS or (kind == "soak-state" and fields.get("to") in _STATES):
            self._requests.mark()
            self._metrics.mark()
