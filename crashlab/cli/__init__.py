"""The command line: one file a command; parse, call, render, exit code."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main(argv: list[str] | None = None) -> None:
    """Entry point of ``crashlab``. Ctrl-C while the program is still being loaded is no traceback either."""
    try:
        from crashlab.cli.main import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run(argv)
