"""record: the command line."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from .build import BuildError, build
from .campaign import Campaign, say
from .check import check_sass
from .machine import Machine, find_tool, inspect_machine
from .pack import Item, pack
from .scenes import Scene, load_scenes, select, unsuited

RESERVE = 75.0  # seconds of the budget that are kept for reading, compressing and packing the last dumps


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="record", description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for the results (made if missing)")
    parser.add_argument(
        "--only", default="", metavar="SCENE,...", help="these scenes (default: all, the new kinds first)"
    )
    parser.add_argument("--skip", default="", metavar="SCENE,...", help="not these scenes")
    parser.add_argument(
        "--budget", type=float, default=540, metavar="SECONDS", help="for everything (default 540)"
    )
    parser.add_argument(
        "--python", default=sys.executable, help="the interpreter that has PyTorch and Triton"
    )
    parser.add_argument("--part-mib", type=int, default=15, help="largest tar file (default 15)")
    parser.add_argument("--total-mib", type=int, default=60, help="all tar files together (default 60)")
    parser.add_argument("--list", action="store_true", help="name the scenes and what they plant")
    parser.add_argument(
        "--check", action="store_true", help="no GPU: compile, look for each scene's instruction"
    )
    parser.add_argument("--arch", type=int, default=90, help="for --check: compute capability (default 90)")
    parser.add_argument("--nvdisasm", default=None, help="for --check: path of nvdisasm")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    arguments = _arguments(argv)
    try:
        scenes = select(load_scenes(), [name for name in arguments.only.split(",") if name])
        unwanted = {
            scene.name for scene in select(scenes, [name for name in arguments.skip.split(",") if name])
        }
    except ValueError as error:
        print(f"record: {error}", file=sys.stderr)
        return 2
    if arguments.skip:
        scenes = [scene for scene in scenes if scene.name not in unwanted]
    if arguments.list:
        for scene in scenes:
            say(f"{scene.name:32} {scene.facts['planted']}")
        return 0
    try:
        if arguments.check:
            return _check(scenes, arguments.arch, arguments.nvdisasm)
        if arguments.out is None:
            print("record: --out FOLDER is missing", file=sys.stderr)
            return 2
        return _record(scenes, arguments)
    except BuildError as error:
        print(f"record: {error}", file=sys.stderr)
        return 3


def _check(scenes: list[Scene], capability: int, nvdisasm: str | None) -> int:
    tool = nvdisasm or find_tool("nvdisasm")
    if tool is None:
        print("record: nvdisasm was not found: give its path with --nvdisasm", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        complaints = check_sass(scenes, capability, Path(folder), tool)
    for complaint in complaints:
        say(complaint)
    say(f"{len(scenes)} scenes for sm_{capability}: {len(complaints)} complaints")
    return 1 if complaints else 0


class _Interrupted:
    """Set by SIGTERM and SIGINT: stop, pack what there is."""

    def __init__(self) -> None:
        self.yes = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note)

    def _note(self, *_: object) -> None:
        self.yes = True


def _record(scenes: list[Scene], arguments: argparse.Namespace) -> int:
    began = time.monotonic()
    interrupted = _Interrupted()
    machine = inspect_machine()
    if not machine.gpus:
        print("record: nvidia-smi names no GPU; --check works without one", file=sys.stderr)
        return 2
    say(f"{machine.gpu} x{machine.gpus}, driver {machine.driver}, {machine.tools}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gpu-corpus-", ignore_cleanup_errors=True) as scratch:
        work = Path(scratch)
        kinds = {scene.build for scene in scenes if scene.program == "cuda"}
        programs = build(kinds, machine.compute_capability, work / "build")
        say(f"built {', '.join(programs)} in {time.monotonic() - began:.0f} s")
        campaign = Campaign(programs, arguments.python, work / "scenes", lambda: interrupted.yes)
        unfit = {scene.name: unsuited(scene, machine.compute_capability, machine.gpus) for scene in scenes}
        for number, scene in enumerate(scenes, 1):
            why = unfit[scene.name]
            if interrupted.yes:
                why = "interrupted"
            elif time.monotonic() - began > arguments.budget - RESERVE:
                why = "the budget is spent"
            if why:
                campaign.skip(scene, why)
                continue
            campaign.prepare([later for later in scenes[number - 1 :] if not unfit[later.name]])
            run = campaign.run(scene)
            ending = f"exit {run.exit_code} in {run.seconds:.1f} s{' (killed)' if run.killed else ''}"
            say(f"[{time.monotonic() - began:5.0f} s] {number}/{len(scenes)} {scene.name}: {ending}")
        rows = campaign.finish(began + arguments.budget - 10)
        _write(rows, machine, arguments)
    say(f"done in {time.monotonic() - began:.0f} s")
    return 0


def _write(rows: list[dict[str, Any]], machine: Machine, arguments: argparse.Namespace) -> None:
    files: list[list[Item]] = [row.pop("files") for row in rows]
    texts = [item for items in files for item in items if not item.name.startswith("cores/")]
    cores = [item for items in files for item in items if item.name.startswith("cores/")]
    placed, left_out = pack(
        [*texts, *cores], arguments.out, arguments.part_mib << 20, arguments.total_mib << 20
    )
    for row in rows:
        for dump in row.get("dumps", []):
            dump["part"] = placed.get(dump["file"])
    document = {"machine": machine._asdict(), "left_out": left_out, "scenes": rows}
    (arguments.out / "manifest.json").write_text(json.dumps(document, indent=1) + "\n")
    table = [_line(row) for row in rows]
    (arguments.out / "table.txt").write_text("\n".join(table) + "\n")
    say("\n".join(table))
    say(f"{len(placed)} files packed, {len(left_out)} left out {left_out or ''}")


def _line(row: dict[str, Any]) -> str:
    dumps, log = row.get("dumps", []), row.get("driver_log", {})
    error = (dumps[0].get("error") or {}) if dumps else {}
    size = sum(dump["bytes"] for dump in dumps) >> 10
    packed = sum(dump["compressed_bytes"] or 0 for dump in dumps) >> 10
    codes = ",".join(map(str, log.get("driver_codes", []))) or "-"
    instruction = error.get("sass", "")[:44]
    return f"{row['name']:32} {codes:>6} {size:>8}K {packed:>6}K  {instruction:44}  {row['verdict']}"
