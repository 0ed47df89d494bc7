"""The words of a plan: its kinds, its modes, the name of the arm that all others are compared with."""

from __future__ import annotations

ONE_FACTOR, MATRIX, LIST, BISECT = "one-factor", "matrix", "list", "bisect"
KINDS = (ONE_FACTOR, MATRIX, LIST, BISECT)
BASELINE = "baseline"
SCHEMA = "crashlab.sweep-plan/1"
SOAK, RUN = "soak", "run"
