"""An arm's own packages: a folder that prepare commands fill, laid over the environment, never into it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

from crashlab.errors import ToolFailed
from crashlab.sweep.setting import filled

FOLDER = "overlays"
_DONE = ".crashlab-prepared.json"
_SECONDS = 4 * 3600.0
_TAIL = 2000


def prepared(
    folder: str, commands: Sequence[Sequence[str]], marks: Mapping[str, str], environment: Mapping[str, str]
) -> str:
    """Fill the overlay unless these very commands have done so before; its path.

    ``{overlay}``, ``{python}`` and ``{value}`` are filled in. A folder left half filled is made anew.
    Raises ToolFailed with the end of what the command said.
    """
    path = os.path.abspath(folder)
    words = [filled(command, {**marks, "overlay": path, "python": sys.executable}) for command in commands]
    wanted = json.dumps([list(command) for command in words])
    if _marker(path) == wanted:
        return path
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    for command in words:
        _run(command, {**environment, "CRASHLAB_OVERLAY": path})
    with open(os.path.join(path, _DONE), "w", encoding="utf-8") as file:
        file.write(wanted)
    return path


def prefix(environment: Mapping[str, str], path: str) -> tuple[str, ...]:
    """What stands before the server's command so that the overlay lies on top for it, and for it alone:
    crashlab's own process must not import from an arm's packages.

    A virtual environment's ``bin`` comes first in PATH, a folder of packages first in PYTHONPATH.
    """
    if os.path.exists(os.path.join(path, "pyvenv.cfg")):
        search = os.pathsep.join(filter(None, (os.path.join(path, "bin"), environment.get("PATH"))))
        return ("env", f"VIRTUAL_ENV={path}", f"PATH={search}")
    return ("env", f"PYTHONPATH={os.pathsep.join(filter(None, (path, environment.get('PYTHONPATH'))))}")


def _marker(path: str) -> str | None:
    try:
        with open(os.path.join(path, _DONE), encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return None


def _run(command: Sequence[str], environment: Mapping[str, str]) -> None:
    name = " ".join(command)[:200]
    try:
        done = subprocess.run(
            list(command),
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ToolFailed(f"{name} took more than {_SECONDS / 3600:.0f} h.") from error
    except OSError as error:
        raise ToolFailed(
            f"{name} cannot be started: {error.strerror or error}.", hint="Check the prepare command."
        ) from error
    if done.returncode:
        said = done.stdout[-_TAIL:].decode("utf-8", "replace").strip()
        raise ToolFailed(
            f"{name} ended with code {done.returncode}: {said}",
            hint="Run it by hand to see why; {overlay} is the folder that it has to fill.",
        )
