#!/usr/bin/env python3
"""Derive ``crashlab/report/quality/quality.schema.json`` (JSON Schema 2020-12) from ``crashlab.quality.facts``.

usage: scripts/gen_quality_schema.py [--check]     exit status 1 with --check when the file is out of date
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from gen_report_schema import define  # noqa: E402

from crashlab.quality.facts import SCHEMA, QualityReport  # noqa: E402

TARGET = ROOT / "crashlab" / "report" / "quality" / "quality.schema.json"
REQUIRED = {
    "QualityReport": ["schema", "tool", "created", "verdict", "suite", "alpha", "seed"],
    "Verdict": ["kind", "headline"],
}


def build() -> str:
    """The schema as text."""
    definitions: dict[str, Any] = {}
    define(QualityReport, definitions)
    definitions["QualityReport"]["properties"]["schema"] = {"const": SCHEMA}
    for name, definition in definitions.items():
        definition.pop("required", None)
        if name in REQUIRED:
            definition["required"] = REQUIRED[name]
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:crashlab:quality:1",
        "title": SCHEMA,
        "$ref": "#/$defs/QualityReport",
        "$defs": definitions,
    }
    return json.dumps(schema, indent=2) + "\n"


def main() -> int:
    """Write or check."""
    text = build()
    if "--check" in sys.argv[1:]:
        return 0 if TARGET.exists() and TARGET.read_text() == text else 1
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
