"""What a soak says while it goes on: a live table on a terminal, one line a minute elsewhere, or JSON lines."""

from __future__ import annotations

import json
import sys
import time
from typing import IO, TYPE_CHECKING, Any, cast

from crashlab.cli.voice import Unbroken, line
from crashlab.report.safe import one_line

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

    from crashlab.soak.attempt import Snapshot

_PLAIN_SECONDS = 60.0
_NEWS_SECONDS = 2.0
"""A server that starts may give another reason for not being ready at each try."""
_STYLES = {
    "FAILING": "bold red", "STALLED": "bold red", "DEAD": "bold red", "DUMPING": "bold yellow", "PREFILLING": "cyan",
}  # fmt: skip


class View:
    """One of three ways to show snapshots; :meth:`say` prints a line between them."""

    def __init__(self, *, json_lines: bool, quiet: bool, plain_every: float = _PLAIN_SECONDS) -> None:
        self._json, self._quiet, self._every = json_lines, quiet, plain_every
        self._live: Live | None = None
        self._terminal = not json_lines and not quiet and _on_terminal()
        self._next = 0.0
        self._state: str | None = None
        self._note = ""
        self._news = 0.0

    def __enter__(self) -> View:
        if self._terminal:
            from rich.console import Console
            from rich.live import Live

            # rich honours NO_COLOR by itself
            console = Console(file=cast("IO[str]", Unbroken(sys.stderr)), highlight=False)
            self._live = Live(console=console, refresh_per_second=4, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def say(self, text: str) -> None:
        """A line of its own on stderr."""
        if self._quiet:
            return
        words = one_line(text, 500)
        if self._json:
            self._emit({"event": "message", "text": words})
        elif self._live is not None:
            self._live.console.print(f"crashlab: {words}", markup=False)
        else:
            line(f"crashlab: {words}")

    def show(self, snapshot: Snapshot) -> None:
        """Called a few times a second."""
        if self._live is not None:
            self._live.update(table_of(snapshot))
            return
        now = time.monotonic()
        changed = snapshot.status.state != self._state
        news = snapshot.note != self._note and now >= self._news
        if self._quiet or (now < self._next and not changed and not news):
            return
        self._state, self._note = snapshot.status.state, snapshot.note
        self._news = now + _NEWS_SECONDS
        if self._json:
            self._next = now + 1.0
            self._emit(fields_of(snapshot))
        else:
            self._next = now + self._every
            line(f"crashlab: {plain_of(snapshot)}")

    def _emit(self, fields: dict[str, Any]) -> None:
        line(json.dumps(fields))


def _on_terminal() -> bool:
    """A process that was started without stderr has None there."""
    return sys.stderr is not None and sys.stderr.isatty()


def fields_of(snapshot: Snapshot) -> dict[str, Any]:
    """For --json-lines; what is unknown is left out."""
    exposure, status = snapshot.exposure, snapshot.status
    fields = {
        "event": "progress",
        "attempt": snapshot.attempt,
        "state": status.state,
        "why": snapshot.note or status.why,
        "silent_seconds": round(status.silent, 1),
        "elapsed_seconds": round(snapshot.elapsed, 1),
        "load_seconds": round(exposure.seconds, 1),
        "engine_steps": exposure.engine_steps,
        "requests": exposure.requests,
        "tokens": exposure.tokens,
        "tokens_per_second": round(snapshot.tokens_per_second, 1),
        "in_flight": snapshot.in_flight,
        "last_byte_age": None if snapshot.last_byte_age is None else round(snapshot.last_byte_age, 1),
        "failed": snapshot.errors,
        "rejected": snapshot.rejected,
        "odd_answers": snapshot.flagged,
        "faults": snapshot.faults,
        "dump_bytes": snapshot.dump_bytes or None,
    }
    return {key: value for key, value in fields.items() if value is not None}


def plain_of(snapshot: Snapshot) -> str:
    """One line for logs."""
    parts = [f"{snapshot.status.state}: {snapshot.note}" if snapshot.note else snapshot.status.state]
    parts += [f"{name} {value}" for name, value in rows_of(snapshot) if name != "state"]
    return ", ".join(parts)


def rows_of(snapshot: Snapshot) -> list[tuple[str, str]]:
    """Names and values in their order; what says nothing yet is left out."""
    from crashlab.soak.exposure import duration

    exposure, status = snapshot.exposure, snapshot.status
    rows = [
        ("state", f"{status.state}: {snapshot.note or status.why}"),
        ("elapsed", duration(snapshot.elapsed)),
        ("steps", "" if exposure.engine_steps is None else f"{exposure.engine_steps:,}"),
        ("requests", f"{exposure.requests:,}" if exposure.requests else ""),
        ("tokens/s", f"{snapshot.tokens_per_second:,.0f}" if exposure.requests or exposure.tokens else ""),
        ("in flight", str(snapshot.in_flight)),
        ("last byte", "" if snapshot.last_byte_age is None else f"{snapshot.last_byte_age:.1f} s ago"),
        ("failed", f"{snapshot.errors:,}" if snapshot.errors else ""),
        ("refused (429)", f"{snapshot.rejected:,}" if snapshot.rejected else ""),
        ("odd answers", f"{snapshot.flagged:,}" if snapshot.flagged else ""),
        ("signs of a GPU fault", str(snapshot.faults) if snapshot.faults else ""),
        ("dump", f"{snapshot.dump_bytes:,} bytes" if snapshot.dump_bytes else ""),
    ]
    return [(name, value) for name, value in rows if value]


def table_of(snapshot: Snapshot) -> Table:
    """For the terminal."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    style = _STYLES.get(snapshot.status.state, "green")
    for name, value in rows_of(snapshot):
        table.add_row(
            Text(name, style="dim"), Text(one_line(value, 200), style=style if name == "state" else "")
        )
    return table
