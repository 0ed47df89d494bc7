"""The report as one HTML file that needs nothing else: no network, no folder, no server."""

from __future__ import annotations

from crashlab.report.html.page import render

__all__ = ["render"]
