"""What a run left behind: dumps are measured, read by the debugger, compressed; logs are read for facts."""

from __future__ import annotations

import hashlib
import lzma
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, NamedTuple

from .debugger import transcript
from .machine import find_tool
from .process import Run
from .scenes import Scene

CUT_BYTES = 2_000_000  # of a dump that was cut short, this much is kept
_EXCEPTION = re.compile(r"Detected an exception of type (\w+) \((\d+)\)")
_PC = re.compile(r"- PC (0x[0-9a-f]+)")
_FAULTING = re.compile(r"^\*>\s+(0x[0-9a-f]+)(?: <([^>]*)>)?:\s*(.*)$", re.MULTILINE)
_CURRENT = re.compile(r"^=>\s+(0x[0-9a-f]+)(?: <([^>]*)>)?:\s*(.*)$", re.MULTILINE)


class Dump(NamedTuple):
    name: str  # of the scene, with the process's rank where there are several
    bytes: int
    sha256: str | None
    compressed: Path | None
    debugger: Path | None
    debugger_ending: str
    observed: dict[str, Any]


def digest(path: Path) -> str:
    hasher = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            hasher.update(block)
    return hasher.hexdigest()


def compress(path: Path) -> Path:
    """PATH.xz, by the xz tool where there is one (several threads), else by the standard library."""
    target = path.with_name(path.name + ".xz")
    tool = find_tool("xz")
    argv = [tool or "", "-T4", "-6", "-k", "-f", str(path)]
    try:
        done = tool and subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=240, check=False
        )
    except subprocess.TimeoutExpired:
        done = None
    if not done or done.returncode:
        with path.open("rb") as source, lzma.open(target, "wb", preset=6) as sink:
            shutil.copyfileobj(source, sink, 1 << 20)
    return target


def planted_facts(stdout: str) -> dict[str, str]:
    """The lines "FACT name value" of the fault program."""
    words = (line.split(None, 2) for line in stdout.splitlines() if line.startswith("FACT "))
    return {parts[1]: parts[2].strip() for parts in words if len(parts) == 3}


def log_facts(stderr: str) -> dict[str, Any]:
    """What the driver's progress log says."""
    codes = [int(code) for _, code in _EXCEPTION.findall(stderr)]
    return {
        "driver_codes": sorted(set(codes)),
        "driver_names": sorted({name for name, _ in _EXCEPTION.findall(stderr)}),
        "driver_exceptions": len(codes),
        "driver_pcs": sorted(set(_PC.findall(stderr)))[:32],
        "after_exit": "after the warp has exited" in stderr,
        "all_done": "All done" in stderr,
    }


def debugger_facts(text: str) -> dict[str, Any]:
    """The faulting instruction as cuda-gdb prints it; nothing if it gave up before that."""
    section = text.partition("==dis\n")[2].partition("\n==")[0]
    facts: dict[str, Any] = {"fatal": "fatal error internal to GDB" in text}
    for name, pattern in (("error", _FAULTING), ("current", _CURRENT)):
        found = pattern.search(section if name == "error" else text)
        if found and "Cannot disassemble" not in found[3]:
            facts[name] = {"pc": found[1], "place": found[2], "sass": found[3].strip()}
    return facts


def harvest(scene: Scene, folder: Path, seconds: float) -> list[Dump]:
    """Reads and compresses every dump in the scene's folder; the raw dumps are deleted."""
    dumps = []
    paths = sorted(folder.glob("*.nvcudmp"), key=lambda path: path.stat().st_mtime)
    for number, path in enumerate(paths):
        name = scene.name if len(paths) == 1 else f"{scene.name}_{number}"
        whole = path.stat().st_size
        if scene.cut and whole > CUT_BYTES:
            with path.open("r+b") as file:
                file.truncate(CUT_BYTES)
        renamed = path.rename(folder / f"{name}.core")
        began = time.monotonic()
        text, ending = transcript(renamed, seconds)
        observed = {"debugger_seconds": round(time.monotonic() - began, 1), **debugger_facts(text or "")}
        told = folder / f"{name}.debugger.txt"
        told.write_text(text or "")
        sha256, small = (digest(renamed), compress(renamed)) if scene.keep else (None, None)
        size = CUT_BYTES if scene.cut and whole > CUT_BYTES else whole
        dumps.append(Dump(name, size, sha256, small, told if text else None, ending, observed))
        renamed.unlink()
    return dumps


def judge(scene: Scene, run: Run, dumps: list[Dump]) -> str:
    """A few words: does what was recorded agree with what was planted?"""
    refusal = next((line for line in run.stdout.splitlines() if line.startswith("ERROR")), None)
    if run.exit_code == 77 or refusal:
        return f"not run: {(refusal or 'exit 77')[:90]}"
    if not dumps:
        end = next((line for line in run.stdout.splitlines() if line.startswith("END")), "no END line")
        return f"no dump: {end[:90]}"
    codes, expected = log_facts(run.stderr)["driver_codes"], scene.facts["codes"]
    if scene.hang and scene.gpus == 1:
        return "as planted" if not codes else f"differs: exception {codes}"
    if expected and not set(codes) & set(expected):
        return f"differs: exception {codes or 'none'}, expected {expected}"
    opcode, error = scene.facts.get("opcode"), dumps[0].observed.get("error")
    if opcode and error and opcode not in error["sass"]:
        return f"differs: {error['sass'][:60]}, expected {opcode}"
    return "as planted" if error or not expected else "as planted (instruction not read)"
