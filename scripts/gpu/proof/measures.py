"""What the wrapper costs: runs in turns without it, with its environment alone and with it; a flood; quiet."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from crashlab.capture.plan import plan_environment

from . import paired
from .turns import Turns
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


ARMS = ("bare", "environment", "wrapped")
MEASURED = ("eager_us", "graph_us")


def launch_overhead(
    program: list[str], work: Path, rounds: int, deadline: float, cycles: int = 5
) -> dict[str, Any]:
    """Blocks of `program` bare, with the core-dump environment alone, and wrapped, in turns.

    `wrapper`: wrapped to the environment alone; `driver`: the environment to bare, the driver's own price of
    enabled dumps; `cost`: wrapped to bare, what a user pays. Medians of all blocks stand beside them.
    """
    kept: list[dict[str, dict[str, list[float]]]] = []
    (work / "env" / "cores").mkdir(parents=True, exist_ok=True)
    (work / "env" / "pipes").mkdir(exist_ok=True)
    for number in range(rounds):
        if time.monotonic() > deadline:
            break
        kept.append(_round(program, work, number, cycles))
    out: dict[str, Any] = {"rounds": len(kept), "samples": kept}
    for name in MEASURED:
        if not any(one[name]["wrapped"] for one in kept):
            continue
        out[name] = {
            key: round(statistics.median(t for one in kept for t in one[name][key]), 3) for key in ARMS
        }
        for label, base, other in (
            ("wrapper", "environment", "wrapped"),
            ("driver", "bare", "environment"),
            ("cost", "bare", "wrapped"),
        ):
            found = paired.ratio([(one[name][base], one[name][other]) for one in kept])
            if found is not None:
                out[name][label] = {k: round(v, 5) for k, v in found._asdict().items()}
    return out


def _round(program: list[str], work: Path, number: int, cycles: int) -> dict[str, dict[str, list[float]]]:
    """A fresh process for each arm; in each cycle they go there and back: A B C, C B A."""
    times: dict[str, dict[str, list[float]]] = {name: {key: [] for key in ARMS} for name in MEASURED}
    dumps = plan_environment({}, str(work / "env")).apply(os.environ)
    wrapped = crashlab("run", "-q", "--out", str(work / f"overhead-{number}"), "--", *program)
    first = number % len(ARMS)
    runners = {
        "bare": Turns(program),
        "environment": Turns(program, dumps),
        "wrapped": Turns(wrapped, environment()),
    }
    order = [*ARMS[first:], *ARMS[:first]]
    try:
        if any(runners[key].block() is None for key in order):  # start-up: not counted
            return times
        for half in range(2 * cycles):
            told = {key: runners[key].block() for key in (order if half % 2 == 0 else order[::-1])}
            for name in MEASURED:
                values = {key: (one or {}).get(name, {}).get("median") for key, one in told.items()}
                if all(isinstance(value, float | int) and value > 0 for value in values.values()):
                    for key, value in values.items():
                        times[name][key].append(float(value))
    finally:
        for one in runners.values():
            one.end()
    return times


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
