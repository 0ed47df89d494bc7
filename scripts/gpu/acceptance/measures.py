"""What the wrapper costs: runs in turns without it, with its environment alone and with it; a flood; quiet."""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from crashlab.capture.plan import plan_environment

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
    """Medians of `overhead` bare, with the core-dump environment alone, and wrapped, in turns.

    `ratio`: wrapped to bare, what a user pays; `wrapper`: wrapped to the environment alone. What lies
    between is the driver's own price of enabled dumps.
    """
    arms = ("bare", "environment", "wrapped")
    times: dict[str, dict[str, list[float]]] = {key: {"eager_us": [], "graph_us": []} for key in arms}
    (work / "env" / "cores").mkdir(parents=True, exist_ok=True)
    (work / "env" / "pipes").mkdir(exist_ok=True)
    dumps = plan_environment({}, str(work / "env")).apply(os.environ)
    argv = [str(program), "64", "2000"]
    for number in range(pairs):
        for key in arms if number % 2 == 0 else arms[::-1]:
            if time.monotonic() > deadline - 40:  # the other two measurements need that long
                break
            if key == "wrapped":
                value = _wrapped(argv, work / f"overhead-{number}")
            else:
                value = _plain(argv, dumps if key == "environment" else None)
            for name, numbers in times[key].items():
                if value is not None:
                    numbers.append(value[name]["median"])
    out: dict[str, Any] = {"pairs": pairs, "samples": times}
    for name in ("eager_us", "graph_us"):
        if not all(times[key][name] for key in arms):
            continue
        medians = {key: statistics.median(times[key][name]) for key in arms}
        out[name] = {
            **medians,
            "ratio": round(medians["wrapped"] / medians["bare"], 5),
            "wrapper": round(medians["wrapped"] / medians["environment"], 5),
            "uncertain": round(_uncertain(times["environment"][name], times["wrapped"][name]), 5),
        }
    return out


def _uncertain(one: list[float], other: list[float]) -> float:
    """The relative standard error of a ratio of two medians (1.25 times that of means)."""
    if min(len(one), len(other)) < 2:
        return 1.0
    shares = [
        statistics.stdev(some) / statistics.median(some) / math.sqrt(len(some)) for some in (one, other)
    ]
    return 1.25 * math.hypot(*shares)


def _plain(argv: list[str], env: dict[str, str] | None) -> dict[str, Any] | None:
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, env=env, timeout=60, check=False
    )
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
                timeout=120,
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
    """User and system seconds of a process and all below it (the program itself sleeps)."""
    root = psutil.Process(pid)
    times = [process.cpu_times() for process in (root, *root.children(recursive=True))]
    return sum(one.user + one.system for one in times)
