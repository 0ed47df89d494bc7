"""The command line: one file a command; parse, call, render, exit code."""

from __future__ import annotations

from crashlab.cli.main import main

__all__ = ["main"]
