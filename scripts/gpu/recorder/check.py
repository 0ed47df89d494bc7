"""Proves without a GPU that each scene's kernel holds the instruction that the scene is about."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .build import SOURCES, compile_command, run_compiler, sources
from .machine import output_of
from .scenes import Scene

_HEADING = re.compile(r"^\.text\.(\S+):$", re.MULTILINE)


def _functions(listing: str) -> dict[str, str]:
    """{symbol: its instructions} of nvdisasm's output."""
    pieces = _HEADING.split(listing)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def check_sass(scenes: list[Scene], capability: int, folder: Path, nvdisasm: str) -> list[str]:
    """Compiles every source to machine code and looks for each scene's opcode. Returns the complaints."""
    cubins: dict[tuple[str, str], Path] = {}
    commands = []
    for kind in ("lineinfo", "nolineinfo", "debug", "rdc"):
        for source in sources(kind, capability):
            cubins[kind, source.name] = folder / f"{kind}-{source.stem}.cubin"
            commands.append(compile_command(source, cubins[kind, source.name], kind, capability, "-cubin"))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(run_compiler, commands))
        listings = list(
            pool.map(lambda path: _functions(output_of([nvdisasm, "-c", str(path)], 60)), cubins.values())
        )
    functions = dict(zip(cubins, listings, strict=True))
    complaints = []
    for scene in scenes:
        kernel, opcode = scene.facts.get("kernel"), scene.facts.get("opcode")
        if scene.program != "cuda" or not kernel or not scene.min_cc <= capability <= scene.max_cc:
            continue
        known = functions.get((scene.build, scene.facts["source"]), {})
        extra = functions.get(("rdc", "separate_callee.cu"), {}) if scene.build == "rdc" else {}
        text = known.get(kernel, "") + extra.get(scene.facts["function"], "")
        if kernel not in known:
            complaints.append(f"{scene.name}: no kernel {kernel} in {SOURCES.name}/{scene.facts['source']}")
        elif opcode and not re.search(rf"\b{re.escape(opcode)}\b", text):
            complaints.append(f"{scene.name}: no {opcode} in {kernel}")
    return complaints
