"""The command line: one file a command; parse, call, render, exit code."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main(argv: list[str] | None = None) -> None:
    """Entry point of ``crashlab``. Ctrl-C while the program is still being loaded is no traceback either."""
    import gc

    gc.set_threshold(50_000, 20, 20)  # looking for cycles in what imports leave costs 3 % of a short command
    try:
        from crashlab.cli.entry import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run(argv)
