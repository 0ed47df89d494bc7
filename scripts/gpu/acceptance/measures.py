"""What the wrapper costs: alternating runs with and without it, a flood of output, and quiet."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from .wrap import crashlab, environment, wrap

LINES = 2_500_000
_PRINTER = (
    "import sys,time\n"
    "began=time.perf_counter()\n"
    "line='x'*72+' %06d\\n'\n"
    f"for n in range({LINES}):\n"
    "    sys.stdout.write(line%(n%1000000))\n"
    "sys.stdout.flush()\n"
    "sys.stderr.write('SECONDS %.4f\\n'%(time.perf_counter()-began))\n"
)


def launch_overhead(program: Path, work: Path, pairs: int, deadline: float) -> dict[str, Any]:
    """Medians of `overhead` with and without the wrapper, in turns; `ratio` wrapped to bare."""
    times: dict[str, dict[str, list[float]]] = {
        key: {"eager_us": [], "graph_us": []} for key in ("bare", "wrapped")
    }
    argv = [str(program), "64", "2000"]
    for number in range(pairs):
        order = ("bare", "wrapped") if number % 2 == 0 else ("wrapped", "bare")
        for key in order:
            if time.monotonic() > deadline:
                break
            value = _bare(argv) if key == "bare" else _wrapped(argv, work / f"overhead-{number}")
            for name, numbers in times[key].items():
                if value is not None:
                    numbers.append(value[name]["median"])
    out: dict[str, Any] = {"pairs": pairs, "samples": times}
    for name in ("eager_us", "graph_us"):
        bare, wrapped = times["bare"][name], times["wrapped"][name]
        if bare and wrapped:
            out[name] = {
                "bare": statistics.median(bare),
                "wrapped": statistics.median(wrapped),
                "ratio": round(statistics.median(wrapped) / statistics.median(bare), 5),
            }
    return out


def _bare(argv: list[str]) -> dict[str, Any] | None:
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    return _last_json(done.stdout)


def _wrapped(argv: list[str], folder: Path) -> dict[str, Any] | None:
    wrap(folder, ["-q"], argv, 60)
    try:
        return _last_json((folder / "output" / "001.stdout.log").read_bytes())
    except OSError:
        return None


def _last_json(text: bytes) -> dict[str, Any] | None:
    for line in reversed(text.splitlines()):
        if line.startswith(b"{"):
            value: dict[str, Any] = json.loads(line)
            return value
    return None


def flood(work: Path, pairs: int, deadline: float) -> dict[str, Any]:
    """A program that prints 200 MB in 2.5 million lines: its own time, bare into a file and wrapped."""
    bare, wrapped, lines = [], [], []
    for number in range(pairs):
        if time.monotonic() > deadline:
            break
        target = work / "flood.txt"
        with open(target, "wb") as out:
            done = subprocess.run(
                [sys.executable, "-c", _PRINTER],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.PIPE,
                check=False,
            )
        bare.append(_seconds(done.stderr))
        target.unlink()
        folder = work / f"flood-{number}"
        wrap(folder, ["-q"], [sys.executable, "-c", _PRINTER], 120)
        log = folder / "output" / "001.stdout.log"
        lines.append(log.read_bytes().count(b"\n"))
        wrapped.append(_seconds((folder / "output" / "001.stderr.log").read_bytes()))
        log.unlink()
    if not bare:
        return {}
    ratio = statistics.median(wrapped) / statistics.median(bare)
    return {
        "bare_s": bare,
        "wrapped_s": wrapped,
        "lines": lines,
        "expected_lines": LINES,
        "ratio": round(ratio, 4),
    }


def _seconds(err: bytes) -> float:
    for line in err.splitlines():
        if line.startswith(b"SECONDS "):
            return float(line.split()[1])
    return float("nan")


def quiet(work: Path, seconds: float = 20.0) -> dict[str, Any]:
    """Share of one core that wrapper and pump use while the program sleeps."""
    folder = work / "quiet"
    process = subprocess.Popen(
        crashlab("run", "-q", "--out", str(folder), "--", "sleep", str(seconds + 4)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(),
    )
    time.sleep(3)
    before, began = _cpu(process.pid), time.monotonic()
    time.sleep(seconds)
    used, passed = _cpu(process.pid) - before, time.monotonic() - began
    process.wait(30)
    return {"cpu_seconds": round(used, 4), "seconds": round(passed, 2), "share": round(used / passed, 6)}


def _cpu(pid: int) -> float:
    """User and system seconds of a process and its children, the program itself left out (it sleeps)."""
    total = 0.0
    for number in [pid, *_children(pid)]:
        try:
            fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def _children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
