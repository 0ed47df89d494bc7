"""``crashlab.quality/1`` as JSON. The schema beside this file is derived from the types."""

from __future__ import annotations

import math
from typing import Any

from crashlab.errors import UnreadableInput
from crashlab.quality.facts import SCHEMA, QualityReport
from crashlab.report import jsonio


def plain(report: QualityReport) -> Any:
    """Plain JSON values; a number that JSON has no word for is absent."""
    return _finite(jsonio.to_json(report))


def dumps(report: QualityReport) -> str:
    """JSON text, two blanks of indentation, ending in a newline."""
    from crashlab.report.jsontext import written

    return written(plain(report)) + "\n"


def from_json(text: str) -> QualityReport:
    """Read back what :func:`dumps` wrote, of any version that only added fields; UnreadableInput otherwise."""
    raw = jsonio.parsed(text, "Give the quality.json that crashlab wrote.")
    schema = raw.get("schema") if isinstance(raw, dict) else None
    report = jsonio.build(QualityReport, raw, 0) if schema == SCHEMA else None
    if not isinstance(report, QualityReport):
        raise UnreadableInput(
            f"This is no quality report that this crashlab can read ({SCHEMA!r} with all its required parts).",
            hint="Give the quality.json of a 'crashlab quality' run.",
        )
    return report


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value
