"""``crashlab.sweep/1``: a sweep's result as JSON, and back. Types of the fields: :mod:`crashlab.sweep.facts`."""

from __future__ import annotations

from typing import Any

from crashlab import __version__
from crashlab.errors import UnreadableInput
from crashlab.report import jsonio
from crashlab.sweep.facts import SweepResult

SCHEMA = "crashlab.sweep/1"


def dumps(result: SweepResult) -> str:
    """JSON text, two blanks of indentation, ending in a newline."""
    from crashlab.report.jsontext import written

    head: dict[str, Any] = {"schema": SCHEMA, "tool": {"name": "crashlab", "version": __version__}}
    body = {**head, **jsonio.to_json(result)}
    return written(body, allow_nan=False) + "\n"


def from_json(text: str | bytes) -> SweepResult:
    """Read back what :func:`dumps` wrote, of any version that only added fields; UnreadableInput otherwise."""
    raw = jsonio.parsed(text, "Give the sweep.json that crashlab wrote.")
    schema = raw.get("schema") if isinstance(raw, dict) else None
    if schema != SCHEMA:
        raise UnreadableInput(
            f"This JSON is no sweep that this crashlab can read: its schema is not {SCHEMA!r}.",
            hint="Give the sweep.json of a sweep's directory; reports of single crashes are for 'crashlab report'.",
        )
    result = jsonio.build(SweepResult, raw, 0)
    if not isinstance(result, SweepResult):
        raise UnreadableInput(
            "The sweep lacks its required parts.", hint="Run 'crashlab sweep' again on its plan: it resumes."
        )
    return result
