"""The sweep's own record: one JSON object a line, written before anything is done about it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from crashlab.rundir.journal import Journal, stamp
from crashlab.rundir.lines import finite, json_lines
from crashlab.sweep.facts import OUTCOMES, ArmRun, Effective, Exposure, Setting

NAME = "journal.jsonl"
STARTED, ENDED, LOST = "run-started", "run-ended", "run-lost"


class Started(NamedTuple):
    """A run that was begun. ``run`` counts all runs from 1; ``token`` marks its processes."""

    run: int
    arm: str
    number: int
    token: str
    rundir: str
    exposure: float | None = None


class Record(NamedTuple):
    """All that a journal says: what began, what ended, and what was given up as lost."""

    started: Mapping[int, Started]
    ended: Mapping[int, ArmRun]
    lost: Mapping[int, str]

    @property
    def runs(self) -> list[ArmRun]:
        """The finished runs in the order in which they began."""
        return [self.ended[run] for run in sorted(self.ended)]

    @property
    def open(self) -> list[Started]:
        """Begun, and neither ended nor lost: whoever was running them is gone, or is at it still."""
        return [
            one for run, one in sorted(self.started.items()) if run not in self.ended and run not in self.lost
        ]

    @property
    def next_run(self) -> int:
        """The number of the next run: never one that was used."""
        return max(self.started, default=0) + 1


class SweepJournal:
    """Appends to one file of a sweep's folder."""

    def __init__(self, folder: str, name: str = NAME) -> None:
        path = os.path.join(folder, name)
        _end_torn_line(path)
        self._journal = Journal(path)

    def note(self, event: str, **fields: Any) -> None:
        """Any event."""
        self._journal.append({**stamp(), "event": event, **fields})

    def started(self, one: Started) -> None:
        """A run begins."""
        self.note(STARTED, **one._asdict())

    def ended(self, run: int, result: ArmRun) -> None:
        """A run has a result."""
        self.note(ENDED, run=run, **to_fields(result))

    def lost(self, run: int, why: str) -> None:
        """A run gave no result and will not; it is made again under a new number."""
        self.note(LOST, run=run, why=why)

    def close(self) -> None:
        """Close the file."""
        self._journal.close()


def _end_torn_line(path: str) -> None:
    """A line that a kill or a full disk cut short must not swallow the next one."""
    with suppress(OSError), open(path, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            file.write(b"\n")


def read(folder: str, problems: list[str] | None = None) -> Record:
    """What the journals of a folder say; torn lines (a kill, a full disk) are skipped.

    ``problems`` takes a sentence for each journal with lines that could not be read.
    """
    try:
        names = sorted(n for n in os.listdir(folder) if n.startswith("journal") and n.endswith(".jsonl"))
    except OSError:
        names = []
    return replay(line for name in names for line in json_lines(os.path.join(folder, name), problems))


def replay(lines: Iterable[Mapping[str, Any]]) -> Record:
    """The state after a sequence of events."""
    started: dict[int, Started] = {}
    ended: dict[int, ArmRun] = {}
    lost: dict[int, str] = {}
    for line in lines:
        run = line.get("run")
        if not isinstance(run, int) or isinstance(run, bool):
            continue
        event = line.get("event")
        if event == STARTED and (one := _started(run, line)) is not None:
            started[run] = one
        elif event == ENDED and (result := from_fields(line)) is not None:
            ended[run] = result
            lost.pop(run, None)
        elif event == LOST and run not in ended:
            lost[run] = str(line.get("why") or "")
    return Record(started, ended, lost)


def _started(run: int, line: Mapping[str, Any]) -> Started | None:
    arm, number, token, rundir = (line.get(name) for name in ("arm", "number", "token", "rundir"))
    if not isinstance(arm, str) or not isinstance(number, int):
        return None
    if not isinstance(token, str) or not isinstance(rundir, str):
        return None
    return Started(run, arm, number, token, rundir, finite(line.get("exposure")))


def to_fields(run: ArmRun) -> dict[str, Any]:
    """A result as JSON values."""
    fields = run._asdict()
    fields["exposure"] = run.exposure._asdict()
    fields["requested"] = [one._asdict() for one in run.requested]
    fields["effective"] = [one._asdict() for one in run.effective]
    return fields


def from_fields(fields: Mapping[str, Any]) -> ArmRun | None:
    """The result out of such values, None if they hold none."""
    arm, number, outcome = fields.get("arm"), fields.get("number"), fields.get("outcome")
    if not isinstance(arm, str) or not isinstance(number, int) or outcome not in OUTCOMES:
        return None
    given = fields.get("exposure")
    amounts = given if isinstance(given, dict) else {}
    return ArmRun(
        arm,
        number,
        outcome,
        Exposure(
            _whole(amounts.get("steps")),
            finite(amounts.get("hours")),
            _whole(amounts.get("requests")),
            _whole(amounts.get("tokens")),
        ),
        _text(fields.get("key")),
        finite(fields.get("time_to_event_hours")),
        fields.get("at_startup") is True,
        tuple(
            Setting(str(one.get("lever")), _text(one.get("value"))) for one in _rows(fields.get("requested"))
        ),
        tuple(_effective(one) for one in _rows(fields.get("effective"))),
        _text(fields.get("rundir")),
        _text(fields.get("note")),
        _text(fields.get("started_utc")),
        _text(fields.get("machine")),
    )


def _effective(row: Mapping[str, Any]) -> Effective:
    took = row.get("took")
    return Effective(
        str(row.get("lever")),
        _text(row.get("value")),
        _text(row.get("source")),
        took if isinstance(took, bool) else None,
    )


def _rows(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _whole(value: object) -> int | None:
    number = finite(value)
    return None if number is None else int(number)
