#!/usr/bin/env python3
"""Derive ``crashlab/report/report.schema.json`` (JSON Schema 2020-12) from the types in ``crashlab.facts``.

usage: scripts/gen_report_schema.py [--check]     exit status 1 with --check when the file is out of date
"""

from __future__ import annotations

import sys

from generated import ROOT, settle
from typeschema import document

from crashlab.facts import Report
from crashlab.report.jsonio import SCHEMA

TARGET = ROOT / "crashlab" / "report" / "report.schema.json"
REQUIRED = {"Report": ["schema", "tool", "created", "inputs", "verdict"], "Verdict": ["kind", "headline"]}

if __name__ == "__main__":
    sys.exit(settle({TARGET: document(Report, SCHEMA, REQUIRED)}))
