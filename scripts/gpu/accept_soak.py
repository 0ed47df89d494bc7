#!/usr/bin/env python3
"""Proves `crashlab soak` against a real vLLM on a GPU: planted faults, a planted stall and planted NaN.

    PYTHONPATH=. python3 scripts/gpu/accept_soak.py --out FOLDER --server-cmd 'vllm serve MODEL' \\
        --kernel NAME --source FILE --env NAME=VALUE --env stall:NAME=VALUE [--only fault,stall] [--budget 560]

`--server-cmd` starts the server ({port} is filled in, else --port is appended). What plants the fault is a plug-in
of your own: a kernel `--kernel` in `--source` that stores out of bounds after a while, or spins; `--env` switches it
on, for all cases or with a prefix for one. NaN is planted by the plug-in in `nan_plugin/`.

Cases: fault, fault-graphs (CUDA graphs verified from the server's log), fault-again, stall (with its hang dump),
garbage. Each ends in a row with the expected and the seen verdict. FOLDER gets `accept_soak.json` and `CASE.tar.xz`,
the run directory with its dump compressed: at most 8 files of 16 MB, 64 MB together. Exit code 0: all right.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPTS))
sys.path.insert(0, str(SCRIPTS.parents[1]))
sys.dont_write_bytecode = True

from proof import soakcases  # noqa: E402
from proof.machine import describe  # noqa: E402
from proof.pack import FILE_LIMIT, FILES, TOTAL_LIMIT, pack  # noqa: E402
from proof.table import Table  # noqa: E402
from proof.wrap import environment, processes_of  # noqa: E402

LOAD = (
    "--clients 8 --input-tokens 32:256 --output-tokens 16:96 --for 240s --ready-within 240s --stall-after 20s "
    "--canary-every 100"
)
CASE_SECONDS = 280.0
LEAST_SECONDS = 90.0
"""A case is not begun with less than this left of the budget."""


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--server-cmd", required=True)
    parser.add_argument("--kernel", required=True, help="part of the planted kernel's name")
    parser.add_argument("--source", required=True, help="end of the planted kernel's source file name")
    parser.add_argument("--env", action="append", default=[], metavar="[CASE:]NAME=VALUE")
    parser.add_argument("--args", action="append", default=[], metavar="CASE=ARGUMENTS")
    parser.add_argument("--load", default=LOAD, help="options of crashlab soak (default: %(default)s)")
    parser.add_argument("--only", default="", help="names of cases")
    parser.add_argument("--budget", type=float, default=560.0, help="seconds for all")
    return parser.parse_args(argv)


def run_case(
    case: soakcases.Case, options: argparse.Namespace, folder: Path, seconds: float
) -> soakcases.Seen:
    """One soak, ended gently when its time is up; no process of it is left behind."""
    argv = soakcases.command(case, options.server_cmd, folder, options.load)
    env = {**environment(), **case.env}
    paths = (environment()["PYTHONPATH"], case.env.get("PYTHONPATH"), os.environ.get("PYTHONPATH"))
    env["PYTHONPATH"] = ":".join(path for path in paths if path)
    with open(folder.parent / f"{case.name}.terminal.txt", "wb") as terminal:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=terminal, env=env
        )
        code: int | None = None
        for wait, number in ((seconds, signal.SIGINT), (40.0, signal.SIGINT), (20.0, signal.SIGKILL)):
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(wait)
                break
            process.send_signal(number)
        else:
            process.wait()
    for pid in processes_of(folder):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    return soakcases.read_seen(code, folder)


def main(argv: list[str] | None = None) -> int:
    options = parse(argv)
    options.out.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + options.budget
    only = {name for name in options.only.split(",") if name}
    listed = soakcases.with_settings(soakcases.cases(), options.env, options.args)
    if unknown := only - {case.name for case in listed}:
        print(f"no such case: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    table = Table()
    with tempfile.TemporaryDirectory(prefix="accept-") as place:
        for case in [case for case in listed if not only or case.name in only]:
            one(case, options, Path(place), table, deadline)
            result = {"machine": describe(), "server": options.server_cmd, "rows": table.rows}
            text = json.dumps(result, indent=1, default=str) + "\n"
            (options.out / "accept_soak.json").write_text(text)
    return table.summary()


def one(
    case: soakcases.Case, options: argparse.Namespace, place: Path, table: Table, deadline: float
) -> None:
    began = time.monotonic()
    if deadline - began < LEAST_SECONDS:
        table.add(case.name, ["not run: the time was used up"], 0.0)
        return
    folder = place / case.name
    more: dict[str, Any] = {}
    try:
        seen = run_case(case, options, folder, min(CASE_SECONDS, deadline - began - 45.0))
        wrong = soakcases.judge(case, seen, options.kernel, options.source)
        more = soakcases.row_of(case, seen)
        terminal = (place / f"{case.name}.terminal.txt").read_bytes()
        if folder.is_dir():
            (folder / "terminal.txt").write_bytes(terminal[-(256 << 10) :])
        if wrong:
            more["terminal"] = terminal[-3000:].decode("utf-8", "replace")
        more["left_out"] = pack(folder, options.out / f"{case.name}.tar.xz", room(options.out))
    except Exception as error:  # noqa: BLE001 (it becomes a row of the table; the next case must run)
        wrong = [f"{type(error).__name__}: {error}"]
    table.add(case.name, wrong, time.monotonic() - began, **more)


def room(out: Path) -> int:
    """Bytes that the next evidence file may have."""
    kept = [path.stat().st_size for path in out.glob("*.tar.xz")]
    if len(kept) >= FILES - 1:
        return 0
    return max(0, min(FILE_LIMIT, TOTAL_LIMIT - 1_000_000 - sum(kept)))


if __name__ == "__main__":
    sys.exit(main())
