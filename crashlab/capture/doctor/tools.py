"""The second witnesses: cuda-gdb and nvdisasm, and whether they are new enough."""

from __future__ import annotations

import os

from crashlab.capture.doctor.check import WARN, Check, ok
from crashlab.capture.doctor.place import Place, dotted
from crashlab.debugger import candidates
from crashlab.debugger.version import first_version_for
from crashlab.errors import CrashlabError
from crashlab.sass.disassembler import find_nvdisasm, version


def cuda_gdb(place: Place) -> Check:
    """Is there a cuda-gdb that knows this driver and chip?"""
    why = "it is the second opinion on every dump; crashlab reads dumps without it, too"
    found = candidates.find(
        env=place.environ, toolkits=os.path.join(place.root, "usr/local"), runner=place.runner
    )
    choice = candidates.choose(found, dotted(place.driver)[:2] or None, place.sm)
    if choice.candidate is None:
        return Check("cuda-gdb", WARN, choice.why, why, choice.hint)
    if choice.misfits:
        return Check("cuda-gdb", WARN, choice.why, why, candidates.INSTALL_HINT)
    return ok("cuda-gdb", choice.why, why)


def nvdisasm(place: Place) -> Check:
    """Is there an nvdisasm?"""
    why = "it spells the faulting instruction and its surroundings"
    try:
        tool = find_nvdisasm(None, f"sm_{place.sm[0]}{place.sm[1]}" if place.sm is not None else None)
    except CrashlabError as error:
        return Check("nvdisasm", WARN, str(error), why, error.hint)
    if tool is None:
        return Check("nvdisasm", WARN, "nvdisasm was not found", why, "pip install nvidia-cuda-nvdisasm")
    try:
        told = version(tool)
    except CrashlabError as error:
        return Check(
            "nvdisasm", WARN, f"{tool.path}: {error}", why, "pip install --upgrade nvidia-cuda-nvdisasm"
        )
    needed = first_version_for(place.sm) if place.sm is not None else None
    if needed is not None and told is not None and dotted(told)[:2] < needed:
        found = (
            f"{tool.path}, version {told}, does not know sm_{place.sm[0]}{place.sm[1]}" if place.sm else told
        )
        return Check("nvdisasm", WARN, found, why, "pip install --upgrade nvidia-cuda-nvdisasm")
    return ok("nvdisasm", f"{tool.path}, version {told or 'unknown'}", why)
