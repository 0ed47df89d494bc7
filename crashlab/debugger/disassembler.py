"""Where the programs are that cuda-gdb disassembles with."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence

from crashlab.debugger.candidates import toolkit_bins

TOOLS = ("cuobjdump", "nvdisasm")
"""cuda-gdb looks for cuobjdump on PATH, and cuobjdump for nvdisasm."""


def find_tools(
    debugger: str,
    *,
    env: Mapping[str, str] | None = None,
    library_paths: Sequence[str] | None = None,
) -> dict[str, str]:
    """Name → path of each of :data:`TOOLS` that exists: beside the debugger, on PATH, in toolkits, in wheels.

    The wheels of NVIDIA keep their programs in ``site-packages/nvidia/*/bin``, which is on no PATH.
    """
    env = os.environ if env is None else env
    places = list(_places(debugger, env, sys.path if library_paths is None else library_paths))
    found = {}
    for tool in TOOLS:
        for place in places:
            path = os.path.join(place, tool)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                found[tool] = path
                break
    return found


def _places(debugger: str, env: Mapping[str, str], library_paths: Sequence[str]) -> Iterator[str]:
    for program in (os.path.abspath(debugger), os.path.realpath(debugger)):
        yield os.path.dirname(program)
        yield os.path.join(os.path.dirname(program), "disassembler")  # of scripts/install-cuda-gdb
    for part in env.get("PATH", "").split(os.pathsep):
        if os.path.isabs(part):
            yield part
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if env.get(name):
            yield os.path.join(os.path.abspath(env[name]), "bin")
    yield from toolkit_bins()
    for library in library_paths:
        wheels = os.path.join(library, "nvidia")
        try:
            names = sorted(os.listdir(wheels), reverse=True)
        except OSError:
            continue
        for name in names:
            yield os.path.join(wheels, name, "bin")
