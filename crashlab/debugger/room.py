"""A private folder for one debugger session: everything it writes lands there and goes with it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from crashlab.debugger.commands import CORE
from crashlab.errors import UnreadableInput, UsageError

_PASSED = ("LD_LIBRARY_PATH",)
"""Some installations find their own libraries only through these."""

_TOOLS = "tools"
_SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin")


class Room(NamedTuple):
    """``root`` is the working folder; the dump lies in it as ``core``. ``dump_bytes`` is its size."""

    root: str
    env: Mapping[str, str]
    dump_bytes: int


@contextmanager
def private_room(dump: str, tools: Mapping[str, str] | None = None) -> Iterator[Room]:
    """Make the folder, with a link to the dump, and remove it whatever happens.

    cuda-gdb unpacks every code image of the dump below ``$TMPDIR/cuda-dbg`` (cuda-gdb 12.4: nothing is
    written elsewhere), keeps a history below ``$HOME``, and pays attention to dozens of variables, so
    the environment is made from nothing. The link spares gdb the dump's real path, which may hold
    blanks, quotes or line breaks. ``tools``, name → path, come first on PATH, through links as well:
    cuda-gdb cannot call a cuobjdump whose path holds a blank (12.4).

    Errors: UnreadableInput when the dump is no plain file; UsageError when its path cannot be one.
    """
    size = _size_of(dump)
    with bare_room(tools) as room:
        os.symlink(os.path.abspath(dump), os.path.join(room.root, CORE))
        yield room._replace(dump_bytes=size)


@contextmanager
def bare_room(tools: Mapping[str, str] | None = None) -> Iterator[Room]:
    """The same folder without a dump, for asking a program about itself."""
    import shutil
    import tempfile

    root = tempfile.mkdtemp(prefix="crashlab-gdb-")
    try:
        for name in ("home", "tmp", _TOOLS):
            os.mkdir(os.path.join(root, name), 0o700)
        for name, path in (tools or {}).items():
            os.symlink(path, os.path.join(root, _TOOLS, name))
        yield Room(root, environment(root), 0)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _size_of(dump: str) -> int:
    import stat

    try:
        found = os.stat(dump)
    except ValueError as error:
        raise UsageError(f"not a path: {dump!r}") from error
    except OSError as error:
        raise UnreadableInput(f"cannot open {dump}: {error.strerror}") from error
    if not stat.S_ISREG(found.st_mode):
        raise UnreadableInput(
            f"{dump} is not a plain file", hint="cuda-gdb reads dumps from files only; copy it to one first"
        )
    return found.st_size


def environment(root: str) -> dict[str, str]:
    """The whole environment of the debugger; ``root`` in it also marks every process of the session."""
    inherited = [part for part in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(part)]
    path = list(dict.fromkeys([os.path.join(root, _TOOLS), *inherited, *_SYSTEM_PATH]))
    env = {
        "PATH": os.pathsep.join(path),
        "HOME": os.path.join(root, "home"),
        "XDG_CACHE_HOME": os.path.join(root, "home"),
        "TMPDIR": os.path.join(root, "tmp"),
        "GDBHISTFILE": os.devnull,
        "INPUTRC": os.devnull,
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
    }
    env |= {name: os.environ[name] for name in _PASSED if name in os.environ}
    return env
