"""cuda-gdb's reading of a dump, as a transcript: ground truth for instruction text, lanes, registers."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path

from .machine import find_tool

QUESTIONS = (
    ("kernels", "info cuda kernels"),
    ("devices", "info cuda devices"),
    ("contexts", "info cuda contexts"),
    ("sms", "info cuda sms"),
    ("errorpc", "print $errorpc"),
    ("pc", "print $pc"),
    ("dis", "x/6i $errorpc"),
    ("dispc", "x/4i $pc"),
    ("line", "info line *$errorpc"),
    ("symbol", "info symbol $errorpc"),
    ("bt", "bt"),
    ("lanes", "info cuda lanes"),
    ("registers", "info registers"),
    ("system", "info registers system"),
    ("blocks", "info cuda blocks"),
    ("warps", "info cuda warps"),
)
LIMIT = 400_000  # characters of a transcript that are kept


def transcript(dump: Path, seconds: float) -> tuple[str | None, str]:
    """(the transcript, how the debugger ended); None without cuda-gdb."""
    tool = find_tool("cuda-gdb")
    if tool is None:
        return None, "cuda-gdb was not found"
    argv = [tool, "--batch", "-nx", "-iex", "set pagination off", "-ex", f"target cudacore {dump}"]
    for name, command in QUESTIONS:
        argv += ["-ex", f"echo =={name}\\n", "-ex", command]
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    ending = "in time"
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        ending = f"killed after {seconds:.0f} s"
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        try:
            output, _ = process.communicate(timeout=5)
        except subprocess.TimeoutExpired:
            output = b""
    if ending == "in time" and process.returncode:
        ending = f"exit {process.returncode}"
    text = output.decode(errors="replace").replace(str(dump), f"/var/crash/{dump.name}")
    return text[:LIMIT], ending
