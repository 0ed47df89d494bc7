"""Input files are opened in one way: regular files only, so that no pipe or device can block or never end."""

from __future__ import annotations

import errno
import os
import stat
from typing import Any, BinaryIO

from crashlab.errors import UnreadableInput


def open_regular(path: str | os.PathLike[str], what: str, *, follow: bool = True) -> BinaryIO:
    """Open an existing regular file for reading.

    ``what`` names it in messages ("log", "report"). ``follow`` False is for files inside a folder that
    somebody else may have made: a symbolic link there may point at anything of ours. Raises UnreadableInput
    when it is missing, may not be read, or is a folder, FIFO, device or such a link.
    """
    name = os.fspath(path)
    shown = name or "''"
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        handle = os.open(name, flags if follow else flags | os.O_NOFOLLOW)
    except (OSError, ValueError) as error:
        if not follow and getattr(error, "errno", None) == errno.ELOOP:
            raise UnreadableInput(f"the {what} {shown} is a link, and links are not followed here") from error
        reason = getattr(error, "strerror", None) or str(error)
        raise UnreadableInput(f"cannot read the {what} {shown}: {reason}", hint="Check the path.") from error
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        if stat.S_ISDIR(mode):
            raise UnreadableInput(f"the {what} {shown} is a folder, not a file", hint="Name a file in it.")
        raise UnreadableInput(
            f"the {what} {shown} is not a regular file", hint="Save what it yields to a file, and give that."
        )
    return os.fdopen(handle, "rb")


def parse_toml(text: str) -> dict[str, Any]:
    """The root table of a TOML text. Raises ValueError for what is no TOML, and nothing else.

    Python's parser also takes integers beyond the 64 bits of the format, some of which cannot even be printed,
    and says of nesting that is too deep only RecursionError.
    """
    import sys

    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        table: dict[str, Any] = tomllib.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    waiting: list[Any] = [table]
    while waiting:
        value = waiting.pop()
        if isinstance(value, (dict, list)):
            waiting.extend(value.values() if isinstance(value, dict) else value)
        elif isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
            raise ValueError("a number is larger than the 64 bits that TOML has")
    return table
