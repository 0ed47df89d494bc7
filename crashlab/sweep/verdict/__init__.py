"""The worded comparisons: from what the runs of the arms were, to what may be said about the levers."""

from __future__ import annotations

from crashlab.sweep.verdict.judge import judge, judged

__all__ = ["judge", "judged"]
