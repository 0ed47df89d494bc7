"""Input files are opened in one way: regular files only, so that no pipe or device can block or never end."""

from __future__ import annotations

import os
import stat
from typing import BinaryIO

from crashlab.errors import UnreadableInput


def open_regular(path: str | os.PathLike[str], what: str) -> BinaryIO:
    """Open an existing regular file for reading.

    ``what`` names it in messages ("log", "report"). Raises UnreadableInput when it is missing, may not be
    read, or is a folder, FIFO or device.
    """
    name = os.fspath(path)
    shown = name or "''"
    try:
        handle = os.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UnreadableInput(f"cannot read the {what} {shown}: {reason}", hint="Check the path.") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise UnreadableInput(
            f"the {what} {shown} is not a regular file", hint="Save what it yields to a file, and give that."
        )
    return os.fdopen(handle, "rb")
