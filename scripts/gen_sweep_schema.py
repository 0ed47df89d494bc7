#!/usr/bin/env python3
"""Derive ``crashlab/report/sweep/sweep.schema.json`` (JSON Schema 2020-12) from ``crashlab.sweep.facts``.

usage: scripts/gen_sweep_schema.py [--check]     exit status 1 with --check when the file is out of date
"""

from __future__ import annotations

import sys

from generated import ROOT, settle
from typeschema import document

from crashlab.report.sweep.jsonform import SCHEMA
from crashlab.sweep.facts import SweepResult

TARGET = ROOT / "crashlab" / "report" / "sweep" / "sweep.schema.json"
REQUIRED = {
    "SweepResult": ["schema", "tool", "plan", "arms", "runs"],
    "Arm": ["name"],
    "ArmRun": ["arm", "number", "outcome"],
}
TOOL = {"type": "object", "properties": {"name": {"type": "string"}, "version": {"type": "string"}}}

if __name__ == "__main__":
    sys.exit(settle({TARGET: document(SweepResult, SCHEMA, REQUIRED, {"tool": TOOL})}))
