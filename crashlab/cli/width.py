"""How wide standard output may be: the terminal's columns, or COLUMNS where it is set."""

from __future__ import annotations

import os
import sys

_NARROWEST = 60


def columns() -> int | None:
    """Columns of the reader's screen; None when nothing says so: a file, a pipe, a terminal of size 0."""
    try:
        asked = int(os.environ.get("COLUMNS", ""))
    except ValueError:
        asked = 0
    if asked > 0:
        return asked
    try:
        if sys.stdout.isatty():
            return os.get_terminal_size(sys.stdout.fileno()).columns or None
    except (OSError, ValueError, AttributeError):
        return None
    return None


def page_width() -> int:
    """Columns for sentences: the screen's, but at least 60 and at most what a page has."""
    from crashlab.report.text import WIDTH

    found = columns()
    return WIDTH if found is None else min(WIDTH, max(_NARROWEST, found))


def table_width() -> int | None:
    """Columns for tables: the screen's, but at least 60; None: as wide as they are."""
    found = columns()
    return None if found is None else max(_NARROWEST, found)
