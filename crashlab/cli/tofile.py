"""Text into the file that a person named on the command line, in the format that its name asks for."""

from __future__ import annotations

import os
from collections.abc import Sequence

from crashlab.errors import UsageError

_FORMATS = {".html": "html", ".htm": "html", ".md": "md", ".json": "json", ".xml": "junit"}
_NEVER = (".pdf", ".doc", ".docx", ".odt", ".rtf", ".csv", ".zip", ".png", ".svg", ".yaml", ".yml")
"""Names of formats that nothing here writes: text under such a name would only be found out later."""


def form_for(form: str | None, path: str | None, formats: Sequence[str], default: str = "text") -> str:
    """The format asked for, else what the file's name asks for: ``.html``, ``.md``, ``.json``, ``.xml`` (JUnit).

    ``default`` for any other name and without a file. Raises UsageError for a name such as ``x.pdf``.
    """
    if form is not None:
        return form
    suffix = os.path.splitext(path or "")[1].lower()
    if suffix in _NEVER:
        raise UsageError(f"Nothing here writes {suffix}.", hint=f"Formats: {', '.join(formats)}.")
    return _FORMATS.get(suffix, default)


def check_target(path: str | None) -> None:
    """Raises UsageError for a file that cannot be written, before hours of work and not after them."""
    if path is None:
        return
    place = path if os.path.exists(path) else os.path.dirname(path) or "."
    if os.path.isdir(path) or not os.access(place, os.W_OK):
        raise UsageError(f"Cannot write {path}.", hint="Name a file in a folder that exists.")


def write_file(path: str, content: str, *, new: bool = False) -> None:
    """Write ``content`` as UTF-8 to ``path``, which must not exist if ``new``. Raises UsageError if that fails."""
    try:
        with open(path, "x" if new else "w", encoding="utf-8", errors="replace") as file:
            file.write(content)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        what = "Name a new file in a folder that exists." if new else "Name a file in a folder that exists."
        raise UsageError(f"Cannot write {path}: {reason}.", hint=what) from error
