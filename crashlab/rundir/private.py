"""Folders for this user alone: what a crash leaves may hold prompts, weights and environments."""

from __future__ import annotations

import errno
import os
import stat

_MODE = 0o700


def is_ours(path: str) -> bool:
    """Whether ``path`` is a real folder (no link) of this user, in which only this user may write."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


def is_planted(path: str) -> bool:
    """Whether somebody else may have put ``path`` there: it exists where everybody may write, and is not ours.

    Whoever owns a folder can exchange what is in it while we write.
    """
    try:
        around = os.stat(os.path.dirname(path) or ".")
    except (OSError, ValueError):
        return False
    return bool(around.st_mode & 0o002) and os.path.lexists(path) and not is_ours(path)


def make_new(path: str) -> bool:
    """Make a folder for this user alone; what is there already keeps its mode, which somebody chose.

    Whether it was made. The folders around it are made as the umask says. Raises OSError.
    """
    os.makedirs(os.path.dirname(path) or os.curdir, exist_ok=True)
    try:
        os.mkdir(path, _MODE)
    except FileExistsError:
        return False
    return True


def make(path: str) -> None:
    """Make a folder for this user alone, or use the one that is there if it is ours. Raises OSError.

    A name below /tmp or /dev/shm can be foreseen, so somebody else may have put a folder or a link there
    first: what is written to it would be theirs to read and to replace.
    """
    try:
        os.mkdir(path, _MODE)
    except FileExistsError:
        if not is_ours(path):
            raise OSError(errno.EPERM, "it is not a folder of this user alone", path) from None
