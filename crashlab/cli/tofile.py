"""Text into the file that a person named on the command line."""

from __future__ import annotations

from crashlab.errors import UsageError


def write_file(path: str, content: str, *, new: bool = False) -> None:
    """Write ``content`` as UTF-8 to ``path``, which must not exist if ``new``. Raises UsageError if that fails."""
    try:
        with open(path, "x" if new else "w", encoding="utf-8", errors="replace") as file:
            file.write(content)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        what = "Name a new file in a folder that exists." if new else "Name a file in a folder that exists."
        raise UsageError(f"Cannot write {path}: {reason}.", hint=what) from error
