#!/usr/bin/env python3
"""Derive ``crashlab/report/sweep/sweep.schema.json`` (JSON Schema 2020-12) from ``crashlab.sweep.facts``.

usage: scripts/gen_sweep_schema.py [--check]     exit status 1 with --check when the file is out of date
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from gen_report_schema import define  # noqa: E402

from crashlab.report.sweep.jsonform import SCHEMA  # noqa: E402
from crashlab.sweep import facts  # noqa: E402

TARGET = ROOT / "crashlab" / "report" / "sweep" / "sweep.schema.json"


def build() -> str:
    definitions: dict[str, Any] = {}
    define(facts.SweepResult, definitions)
    top = definitions["SweepResult"]
    tool = {"type": "object", "properties": {"name": {"type": "string"}, "version": {"type": "string"}}}
    top["properties"] = {"schema": {"const": SCHEMA}, "tool": tool, **top["properties"]}
    top["required"] = ["schema", "tool", "plan", "arms", "runs"]
    for name, required in (("Arm", ["name"]), ("ArmRun", ["arm", "number", "outcome"])):
        definitions[name]["required"] = required
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:crashlab:sweep:1",
        "title": SCHEMA,
        "$ref": "#/$defs/SweepResult",
        "$defs": definitions,
    }
    return json.dumps(schema, indent=2) + "\n"


def main() -> int:
    text = build()
    if "--check" in sys.argv[1:]:
        return 0 if TARGET.exists() and TARGET.read_text() == text else 1
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
