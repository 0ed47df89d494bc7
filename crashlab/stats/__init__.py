"""Statistics of small counts: exact tests and limits, pure functions."""
