#!/usr/bin/env python3
"""Derive ``crashlab/report/quality/quality.schema.json`` (JSON Schema 2020-12) from ``crashlab.quality.facts``.

usage: scripts/gen_quality_schema.py [--check]     exit status 1 with --check when the file is out of date
"""

from __future__ import annotations

import sys

from generated import ROOT, settle
from typeschema import document

from crashlab.quality.facts import SCHEMA, QualityReport

TARGET = ROOT / "crashlab" / "report" / "quality" / "quality.schema.json"
REQUIRED = {
    "QualityReport": ["schema", "tool", "created", "verdict", "suite", "alpha", "seed"],
    "Verdict": ["kind", "headline"],
}

if __name__ == "__main__":
    sys.exit(settle({TARGET: document(QualityReport, SCHEMA, REQUIRED)}))
