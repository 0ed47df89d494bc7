"""A sweep's plan: what is run, which levers are turned, how much exposure is spent. Read from TOML."""

from __future__ import annotations

from crashlab.sweep.plan.budget import Budget
from crashlab.sweep.plan.load import LOAD_OPTIONS, RUN_OPTIONS
from crashlab.sweep.plan.model import Plan
from crashlab.sweep.plan.read import read_plan
from crashlab.sweep.plan.remote import Remote
from crashlab.sweep.plan.words import BASELINE, BISECT, KINDS, RUN, SCHEMA, SOAK

__all__ = [
    "BASELINE",
    "BISECT",
    "KINDS",
    "LOAD_OPTIONS",
    "RUN",
    "RUN_OPTIONS",
    "SCHEMA",
    "SOAK",
    "Budget",
    "Plan",
    "Remote",
    "read_plan",
]
