#!/usr/bin/env python3
"""Proves `crashlab run` and `crashlab doctor` on this GPU: planted faults against verdicts, and what it costs.

    PYTHONPATH=. python3 scripts/gpu/accept_run.py --out FOLDER [--only NAME,…] [--budget 520]

Needs a GPU, its driver and nvcc; torch with Triton adds two scenes. Prints a table; FOLDER gets
`accept_run.json` and `fixtures/NAME/` (run directories with light dumps, compressed). Exit code 0: all right.

The wrapper is held against the core-dump environment alone; what that costs against nothing is the driver's
price and is printed. Blocks of tens of milliseconds take turns (`proof/paired.py` has the statistic); `--only
costs` takes about two and a half minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPTS))
sys.dont_write_bytecode = True

from proof import measures, scenes  # noqa: E402
from proof.machine import describe  # noqa: E402
from proof.table import Table  # noqa: E402
from proof.wrap import crashlab, environment, keep_fixture, wrap  # noqa: E402
from recorder.build import build  # noqa: E402
from recorder.machine import find_tool, inspect_machine  # noqa: E402

OVERHEAD_SECONDS = 85.0


def doctor(table: Table, work: Path, self_test: bool) -> None:
    began = time.monotonic()
    options = ["--json", "--out", str(work), *(["--self-test"] if self_test else [])]
    name = "doctor --self-test" if self_test else "doctor"
    done = subprocess.run(
        crashlab("doctor", *options),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment(),
        timeout=120,
        check=False,
    )
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        table.add(name, [done.stderr.decode("utf-8", "replace")[-400:]], time.monotonic() - began)
        return
    bad = [f"{c['name']}: {c['found']}" for c in answer["checks"] if c["status"] == "fail"]
    wrong = [] if done.returncode == 0 else [f"exit code {done.returncode}", *bad]
    if self_test and sum(c["name"].startswith(("fault:", "hang:")) for c in answer["checks"]) < 6:
        wrong.append("the self-test did not run to its end")
    count = f"{len(answer['checks'])} checks, {sum(c['status'] == 'warn' for c in answer['checks'])} warnings"
    table.add(name, wrong, time.monotonic() - began, headline=count, checks=answer["checks"])


def scene(table: Table, case: scenes.Case, work: Path, fixtures: Path) -> None:
    folder = work / case.name
    wrapped = wrap(folder, list(case.options), case.command, case.seconds, case.meanwhile, SCRIPTS)
    wrong = scenes.judge(case, wrapped)
    headline = (wrapped.report.get("verdict") or {}).get("headline")
    table.add(
        case.name,
        wrong,
        wrapped.seconds,
        code=wrapped.code,
        headline=headline,
        err=wrapped.err[-3000:] if wrong else None,
    )
    keep_fixture(wrapped, fixtures)
    shutil.rmtree(folder / "cores", ignore_errors=True)  # full dumps take gigabytes
    scenes.settle()


def costs(table: Table, program: Path, work: Path, deadline: float) -> None:
    began = time.monotonic()
    # one processor for all: only one of them works at a time
    argv = [str(program), "64", "200", "turns", str(max(os.sched_getaffinity(0)))]
    until = min(began + OVERHEAD_SECONDS, deadline - 60)
    found = measures.launch_overhead(argv, work, 24, until)
    shown = {name: found[name] for name in measures.MEASURED if name in found}
    table.add(
        "overhead", judge_overhead(found), time.monotonic() - began, measured=shown, samples=found["samples"]
    )
    began = time.monotonic()
    share = measures.quiet(work)
    table.add(
        "quiet",
        [] if share["share"] < 0.01 else [f"{share['share']:.2%} of a core"],
        time.monotonic() - began,
        measured=share,
    )
    began = time.monotonic()
    flood = measures.flood(work, 3, deadline)
    wrong = [] if flood and flood["ratio"] <= 1.05 else [f"ratio {flood.get('ratio')}"]
    if any(lines != flood["expected_lines"] for lines in flood.get("lines", [])):
        wrong.append("lines were lost")
    table.add("flood", wrong, time.monotonic() - began, measured=flood)


def judge_overhead(found: dict[str, Any]) -> list[str]:
    """Right is what is surely within one percent: the interval's upper end."""
    wrong = []
    for name in measures.MEASURED:
        ratio = found.get(name, {}).get("wrapper")
        if ratio is None:
            wrong.append(f"{name}: no timings")
        elif ratio["low"] > 1.01:
            wrong.append(f"{name}: {ratio['value']:.4f} of the time with dumps enabled alone")
        elif ratio["high"] > 1.01:
            wrong.append(f"{name}: known only from {ratio['low']:.4f} to {ratio['high']:.4f}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="", help="names of scenes, or doctor, costs")
    parser.add_argument("--skip", default="", help="not these")
    parser.add_argument("--budget", type=float, default=520.0, help="seconds; no new step begins after it")
    options = parser.parse_args()
    only, skip = ({name for name in text.split(",") if name} for text in (options.only, options.skip))
    deadline = time.monotonic() + options.budget
    options.out.mkdir(parents=True, exist_ok=True)
    machine = inspect_machine()
    if not machine.gpus:
        print("no GPU: nvidia-smi names none", file=sys.stderr)
        return 77
    table = Table()
    with tempfile.TemporaryDirectory(prefix="accept-") as name:
        work = Path(name)
        try:
            steps(table, work, options.out / "fixtures", (only, skip), deadline, machine.compute_capability)
        finally:
            result = {
                "machine": describe(machine),
                "rows": table.rows,
            }
            (options.out / "accept_run.json").write_text(json.dumps(result, indent=1, default=str) + "\n")
    return table.summary()


def steps(
    table: Table,
    work: Path,
    fixtures: Path,
    choice: tuple[set[str], set[str]],
    deadline: float,
    capability: int,
) -> None:
    only, skip = choice

    def guarded(name: str, step: Callable[..., None], *arguments: Any) -> None:
        """One step that breaks must not cost the others."""
        began = time.monotonic()
        try:
            step(table, *arguments)
        except Exception as error:  # noqa: BLE001 (it becomes a row of the table)
            table.add(name, [f"{type(error).__name__}: {error}"], time.monotonic() - began)

    def wanted(name: str, seconds: float) -> bool:
        if (only and name not in only) or name in skip:
            return False
        if time.monotonic() + seconds > deadline:
            table.add(name, ["not run: the time was used up"], 0.0)
            return False
        return True

    if wanted("doctor", 30):
        guarded("doctor", doctor, work, False)
        guarded("doctor --self-test", doctor, work, True)
    began = time.monotonic()
    faults = build({"lineinfo"}, capability, work / "build")["lineinfo"]
    overhead = work / "overhead"
    compiler = find_tool("nvcc") or "nvcc"
    source = str(SCRIPTS / "overhead.cu")
    subprocess.run(
        [compiler, "-O3", f"-arch=sm_{capability}", "-o", str(overhead), source], check=True, timeout=120
    )
    table.add("build", [], time.monotonic() - began)
    listed = scenes.cases(faults, SCRIPTS)
    for case in listed[:8]:
        if wanted(case.name, 15):
            guarded(case.name, scene, case, work, fixtures)
    if wanted("costs", 60):
        guarded("costs", costs, overhead, work, deadline - 60)
    for case in listed[8:]:
        if wanted(case.name, 15):
            guarded(case.name, scene, case, work, fixtures)


if __name__ == "__main__":
    sys.exit(main())
