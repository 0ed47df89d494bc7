"""Text into the file that a person named on the command line."""

from __future__ import annotations

import os

from crashlab.errors import UsageError

_FORMATS = {".html": "html", ".htm": "html", ".md": "md", ".json": "json", ".xml": "junit"}


def format_of(path: str | None) -> str | None:
    """The format that a file's name asks for: ``.html``, ``.md``, ``.json``, ``.xml`` (JUnit); None for others."""
    return _FORMATS.get(os.path.splitext(path or "")[1].lower())


def write_file(path: str, content: str, *, new: bool = False) -> None:
    """Write ``content`` as UTF-8 to ``path``, which must not exist if ``new``. Raises UsageError if that fails."""
    try:
        with open(path, "x" if new else "w", encoding="utf-8", errors="replace") as file:
            file.write(content)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        what = "Name a new file in a folder that exists." if new else "Name a file in a folder that exists."
        raise UsageError(f"Cannot write {path}: {reason}.", hint=what) from error
