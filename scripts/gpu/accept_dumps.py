#!/usr/bin/env python3
"""Plants every fault of `scenes.json` on this GPU and holds crashlab's reading of each dump against the truth.

    PYTHONPATH=. python3 scripts/gpu/accept_dumps.py --out FOLDER [--only SCENE,…] [--skip SCENE,…] [--budget 400]

Needs a GPU, its driver and nvcc; torch with Triton adds the framework scenes, cuda-gdb a second opinion. A row is
wrong when the kind, exception, kernel, function or opcode is not what was planted, when the PC is not in the driver's
log or not where cuda-gdb (if it opens the dump) has it, when a recovered address or a thread called bad is not the
planted one, or when there is no dump where there must be one (it is tried twice). FOLDER gets `accept_dumps.json`.
Exit code 0: all right.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).resolve().parent
sys.path.insert(0, str(SCRIPTS))
sys.dont_write_bytecode = True

from proof.dumps import judge_dump, read_and_judge  # noqa: E402
from proof.machine import describe  # noqa: E402
from proof.table import Table  # noqa: E402
from recorder.build import build  # noqa: E402
from recorder.campaign import Campaign  # noqa: E402
from recorder.machine import Machine, inspect_machine  # noqa: E402
from recorder.scenes import Scene, load_scenes, select, unsuited  # noqa: E402

RESERVE = 45.0  # seconds kept for the readers of the last dumps


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="", metavar="SCENE,...", help="these scenes")
    parser.add_argument("--skip", default="", metavar="SCENE,...", help="not these")
    parser.add_argument("--budget", type=float, default=400.0, help="seconds for all")
    return parser.parse_args(argv)


def chosen(options: argparse.Namespace) -> list[Scene]:
    """Without the scene whose dump is cut short by a kill: `accept_run.py` proves that one."""
    listed = select(load_scenes(), [name for name in options.only.split(",") if name])
    skipped = {name for name in options.skip.split(",") if name}
    select(load_scenes(), list(skipped))  # an unknown name is an error here too
    return [scene for scene in listed if scene.name not in skipped and not scene.cut]


def campaign(scenes: list[Scene], machine: Machine, work: Path, deadline: float) -> list[dict[str, Any]]:
    """Each scene once; those that left no dump once more. The recorder's rows, with `attempt`."""
    kinds = {scene.build for scene in scenes if scene.program == "cuda"}
    programs = build(kinds, machine.compute_capability, work / "build")
    rows: dict[str, dict[str, Any]] = {}
    for attempt in (1, 2):
        left = [
            s for s in scenes if attempt == 1 or (not rows[s.name].get("dumps") and rows[s.name].get("run"))
        ]
        if not left:
            break
        run = Campaign(programs, sys.executable, work / f"scenes-{attempt}", lambda: False, read_and_judge)
        for number, scene in enumerate(left):
            why = unsuited(scene, machine.compute_capability, machine.gpus)
            if why is None and time.monotonic() > deadline - RESERVE:
                why = "the budget is spent"
            if why is not None:
                run.skip(scene, why)
                continue
            run.prepare(
                [s for s in left[number:] if not unsuited(s, machine.compute_capability, machine.gpus)]
            )
            run.run(scene)
        for row in run.finish(deadline):
            if attempt == 1 or row.get("run"):
                rows[row["name"]] = {**row, "attempt": attempt}
    return list(rows.values())


def judge_row(scene: Scene, row: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """What is wrong with a scene's row, and what the table keeps of it."""
    dumps = row.get("dumps") or []
    kept: dict[str, Any] = {
        "planted": scene.facts["planted"],
        "attempt": row["attempt"],
        "headline": next((d.get("headline") for d in dumps if d.get("headline")), None),
        "verdict": next((d.get("kind") for d in dumps if d.get("kind")), None),
        "debugger": [_debugger(dump) for dump in dumps],
    }
    if not row.get("run"):
        return [], {**kept, "not_run": row["verdict"]}
    if not dumps:
        told = str(row["verdict"])
        may_be = scene.kind == "maybe-fault" or told.startswith("not run")
        return ([], {**kept, "not_run": told}) if may_be else ([told], kept)
    texts = {item.name.partition("/")[0]: item.path.read_text() for item in row["files"][:2]}
    judged = {
        dump["name"]: judge_dump(
            scene, dump.get("report") or {}, dump, texts.get("program-log", ""), texts.get("driver-log", "")
        )
        for dump in dumps
    }
    if scene.gpus > 1 and not all(judged.values()):
        # of several ranks one fails; the others wait for it, and their dumps say so
        judged = {name: [] if _waits(dumps, name) else wrong for name, wrong in judged.items()}
    wrong = [f"{name}: {what}" if len(dumps) > 1 else what for name, all_ in judged.items() for what in all_]
    return wrong, kept


def _waits(dumps: list[dict[str, Any]], name: str) -> bool:
    return any(dump["name"] == name and dump.get("kind") in ("hang", "no-fault") for dump in dumps)


def _debugger(dump: dict[str, Any]) -> str:
    """Whether cuda-gdb opened the dump and had an instruction for the fault."""
    if dump.get("fatal"):
        return "aborts"
    if dump.get("debugger") != "in time":
        return str(dump.get("debugger"))
    return "names an instruction" if dump.get("error") else "opens"


def main(argv: list[str] | None = None) -> int:
    options = parse(argv)
    try:
        scenes = chosen(options)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    began = time.monotonic()
    machine = inspect_machine()
    if not machine.gpus:
        print("no GPU: nvidia-smi names none", file=sys.stderr)
        return 77
    options.out.mkdir(parents=True, exist_ok=True)
    table = Table()
    with tempfile.TemporaryDirectory(prefix="accept-", ignore_cleanup_errors=True) as place:
        rows = campaign(scenes, machine, Path(place), began + options.budget)
        by_name = {scene.name: scene for scene in scenes}
        for row in rows:
            wrong, kept = judge_row(by_name[row["name"]], row)
            table.add(row["name"], wrong, (row.get("run") or {}).get("seconds", 0.0), **kept)
            if wrong:
                _keep_evidence(options.out, row)
    result = {"machine": describe(machine), "seconds": round(time.monotonic() - began), "rows": table.rows}
    (options.out / "accept_dumps.json").write_text(json.dumps(result, indent=1, default=str) + "\n")
    return table.summary()


def _keep_evidence(out: Path, row: dict[str, Any]) -> None:
    """The reports of a scene that was judged wrong: without them nobody can tell why."""
    reports = [dump.get("report") for dump in row.get("dumps") or []]
    (out / f"wrong-{row['name']}.json").write_text(json.dumps(reports, indent=1, default=str) + "\n")


if __name__ == "__main__":
    sys.exit(main())
