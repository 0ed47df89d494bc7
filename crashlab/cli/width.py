"""How wide standard output may be: the terminal's columns, or COLUMNS where it is set."""

from __future__ import annotations

import os
import sys

_NARROWEST = 40


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


def page_width(default: int | None = None) -> int:
    """Columns for sentences: the screen's, but at least 40 and at most what a page has (110).

    ``default``: where there is no screen; None: a page.
    """
    from crashlab.report.text import WIDTH

    found = columns()
    return (default or WIDTH) if found is None else min(WIDTH, max(_NARROWEST, found))


def sentence_width() -> int:
    """Columns for lines that are broken only on a screen: as wide as they are where there is none."""
    from crashlab.report.text import UNBROKEN

    found = columns()
    return UNBROKEN if found is None else max(_NARROWEST, found)


def table_width() -> int | None:
    """Columns for tables: the screen's, but at least 40; None: as wide as they are."""
    found = columns()
    return None if found is None else max(_NARROWEST, found)
