"""Where nvdisasm is: an explicit path, the PyPI package, Triton's wheel, a CUDA toolkit, ``PATH``."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from crashlab.errors import CrashlabError, MissingTool
from crashlab.sass.releases import Version, fits

HINT = "pip install nvidia-cuda-nvdisasm, or give the path of nvdisasm"

_MOST = 8
_ANSWER_SECONDS = 5.0
_CHIP = re.compile(r"(\d{2,3})[af]?\Z")
_CUDA_MAJOR = re.compile(r"cu(\d+)\Z")
_TOOLKIT = re.compile(r"cuda(?:-(\d+)(?:\.(\d+))?)?\Z")


class Tool(NamedTuple):
    """An nvdisasm executable. ``found_in`` says where it was found, in words."""

    path: str
    found_in: str


def find_nvdisasm(override: str | None = None, arch: str | None = None) -> Tool | None:
    """The newest nvdisasm that knows ``arch`` (``sm_90a``), or None when there is none at all.

    Of several programs each is asked for its release; of equals the first place wins, in the order of this
    module's summary. ``override`` is a path that the user gave: it is used or refused, never replaced by
    another. Raises MissingTool when ``override`` is no executable file.
    """
    if override is not None:
        if not _executable(override):
            raise MissingTool(f"{override} is not an executable nvdisasm", hint=HINT)
        return Tool(os.path.abspath(override), "given by the user")
    found: dict[str, Tool] = {}
    for path, found_in in _candidates():
        if len(found) < _MOST and _executable(path):
            found.setdefault(os.path.realpath(path), Tool(path, found_in))
    tools = list(found.values())
    if len(tools) < 2:
        return tools[0] if tools else None
    return max(tools, key=lambda tool: _rank(tool.path, _chip(arch)))


def _rank(path: str, sm: tuple[int, int] | None) -> tuple[bool, Version]:
    """What to prefer: a release that knows the chip, then a newer one; one that does not answer comes last."""
    release = _release(path)
    return bool(release) and (sm is None or fits(release, sm)), release


@cache
def _release(path: str) -> Version:
    from crashlab.sass.toolversion import version_of

    try:
        told = version_of(path, _ANSWER_SECONDS)
    except CrashlabError:
        return ()
    return tuple(int(part) for part in told.split(".")[:3]) if told else ()


def _chip(arch: str | None) -> tuple[int, int] | None:
    """``sm_120a`` → (12, 0)."""
    number = _CHIP.search(arch or "")
    return (int(number[1]) // 10, int(number[1]) % 10) if number else None


def _executable(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _candidates() -> Iterator[tuple[str, str]]:
    # The packages are looked up as files along sys.path: importing `nvidia` or `triton` would cost
    # more than all the rest of the look-up.
    roots = [os.path.abspath(entry) for entry in sys.path if entry]
    for root in roots:
        for path in _package_paths(os.path.join(root, "nvidia")):
            yield path, "the Python package nvidia-cuda-nvdisasm"
    for root in roots:
        yield os.path.join(root, "triton", "backends", "nvidia", "bin", "nvdisasm"), "the Triton package"
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        home = os.environ.get(variable)
        if home:
            yield os.path.join(home, "bin", "nvdisasm"), variable
    for home in _toolkits("/usr/local"):
        yield os.path.join(home, "bin", "nvdisasm"), "a CUDA toolkit under /usr/local"
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if folder:
            yield os.path.abspath(os.path.join(folder, "nvdisasm")), "PATH"


def _package_paths(folder: str) -> Iterator[str]:
    """CUDA 13 wheels share ``nvidia/cu13``; older ones have a folder a package. Newest CUDA first."""
    for name in _newest_first(folder, _CUDA_MAJOR):
        yield os.path.join(folder, name, "bin", "nvdisasm")
    yield os.path.join(folder, "cuda_nvdisasm", "bin", "nvdisasm")


def _toolkits(folder: str) -> Iterator[str]:
    """``cuda`` (the administrator's choice) first, then the numbered ones, newest first."""
    names = _newest_first(folder, _TOOLKIT)
    for name in sorted(names, key=lambda name: name != "cuda"):
        yield os.path.join(folder, name)


def _newest_first(folder: str, pattern: re.Pattern[str]) -> list[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    found = [(tuple(int(n or 0) for n in m.groups()), name) for name in names if (m := pattern.match(name))]
    return [name for _, name in sorted(found, reverse=True)]
