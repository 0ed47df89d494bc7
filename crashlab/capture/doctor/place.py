"""What is asked, with everything it touches injected, so that any machine can be played in a test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from crashlab.capture import nvml
from crashlab.debugger.process import Limits, Outcome, Runner, run


class Place(NamedTuple):
    """The machine as the checks see it. ``folder`` is where runs would go; ``gpus`` as NVML tells them."""

    environ: Mapping[str, str]
    folder: str
    proc: str = "/proc"
    root: str = "/"
    shm: str = "/dev/shm"
    which: Callable[[str], str | None] = shutil.which
    runner: Runner = run
    gpus: tuple[dict[str, Any], ...] = ()
    nvml: bool = False

    def ask(self, argv: Sequence[str], seconds: float, variables: Mapping[str, str] | None = None) -> Outcome:
        """Run a program in a fresh folder of its own.

        The runner ends every process whose environment names its folder, so the folder must be one
        that nobody else can name.
        """
        from crashlab.debugger.room import bare_room

        with bare_room() as room:
            environment = {**room.env, **(variables or {}), "TMPDIR": room.env["TMPDIR"]}
            return self.runner(argv, environment, room.root, Limits(seconds, 1 << 20), None)

    @property
    def driver(self) -> str | None:
        """Driver version by NVML, else by the kernel module."""
        from crashlab.capture.machine import driver_version

        told = next((gpu.get("driver") for gpu in self.gpus), None)
        return str(told) if told else driver_version(self.proc)

    @property
    def sm(self) -> tuple[int, int] | None:
        """Compute capability of the first GPU."""
        told = next((gpu.get("compute_capability") for gpu in self.gpus), None)
        major, _, minor = str(told or "").partition(".")
        return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else None


def here(folder: str) -> Place:
    """This machine."""
    library = nvml.load()
    gpus = tuple(nvml.gpu_facts(library)) if library is not None else ()
    return Place(os.environ, folder, gpus=gpus, nvml=library is not None)


def dotted(text: str | None) -> tuple[int, ...]:
    """``580.159.04`` → (580, 159, 4); empty if there is no number."""
    out = []
    for part in (text or "").split("."):
        if not part.isdigit():
            break
        out.append(int(part))
    return tuple(out)
