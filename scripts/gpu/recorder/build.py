"""Compiles the fault programs: one object a source file, all at once, one executable a way of building."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .machine import find_tool
from .scenes import HERE

SOURCES = HERE / "faults"
FLAGS = {
    "lineinfo": ["-O3", "-lineinfo"],
    "nolineinfo": ["-O3"],
    "debug": ["-G", "-g"],
    "rdc": ["-O3", "-lineinfo", "-rdc=true"],
}
# Sources that only some architectures can compile: (lowest, highest).
LIMITS = {"cluster": (90, 999), "wgmma": (90, 90)}
SEPARATE = ("separate_caller", "separate_callee")


class BuildError(Exception):
    """A compiler run failed; its message is the compiler's."""


def architecture(stem: str, capability: int) -> str:
    """The warp-group product exists in sm_90a alone."""
    return "sm_90a" if stem == "wgmma" else f"sm_{capability}"


def sources(kind: str, capability: int) -> list[Path]:
    chosen = []
    for path in sorted(SOURCES.glob("*.cu")):
        low, high = LIMITS.get(path.stem, (0, 999))
        wanted = path.stem in (*SEPARATE, "main") if kind == "rdc" else path.stem not in SEPARATE
        if wanted and low <= capability <= high:
            chosen.append(path)
    return chosen


def compile_command(source: Path, output: Path, kind: str, capability: int, mode: str) -> list[str]:
    nvcc = find_tool("nvcc")
    if nvcc is None:
        raise BuildError("nvcc was not found: put the CUDA toolkit on PATH or set CUDA_HOME")
    flags = [*FLAGS[kind], f"-arch={architecture(source.stem, capability)}"]
    return [nvcc, "-std=c++17", "-w", *flags, mode, "-o", str(output), str(source)]


def run_compiler(argv: list[str]) -> None:
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=300
    )
    if done.returncode:
        raise BuildError(f"{' '.join(argv)}\n{done.stdout}{done.stderr}")


def build(kinds: set[str], capability: int, folder: Path) -> dict[str, Path]:
    """The executables: {kind: path}. Raises BuildError."""
    folder.mkdir(parents=True, exist_ok=True)
    jobs: dict[str, list[tuple[list[str], Path]]] = {}
    for kind in sorted(kinds):
        (folder / kind).mkdir(exist_ok=True)
        for source in sources(kind, capability):
            target = folder / kind / f"{source.stem}.o"
            command = compile_command(source, target, kind, capability, "-dc" if kind == "rdc" else "-c")
            jobs.setdefault(kind, []).append((command, target))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(run_compiler, [argv for work in jobs.values() for argv, _ in work]))
        links = []
        for kind, work in jobs.items():
            objects = [str(target) for _, target in work]
            program = folder / f"faults-{kind}"
            extra = ["-rdc=true"] if kind == "rdc" else []
            links.append(
                [find_tool("nvcc") or "nvcc", f"-arch=sm_{capability}", *extra, "-o", str(program), *objects]
            )
        list(pool.map(run_compiler, links))
    return {kind: folder / f"faults-{kind}" for kind in jobs}
