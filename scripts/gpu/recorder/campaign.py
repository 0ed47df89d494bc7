"""The whole recording: scenes one after the other on the GPU, their dumps read and compressed meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from .environment import dump_environment
from .harvest import Dump, harvest, judge, log_facts, planted_facts
from .machine import KernelLog
from .pack import Item
from .process import Run, kill, launch, watch
from .scenes import HERE, Scene

SLOWEST_DEBUGGER = 60.0  # seconds
AHEAD = 2  # PyTorch processes that are imported in advance, while other scenes have the GPU


class Record(NamedTuple):
    scene: Scene
    run: Run | None  # None: it was not run
    why: str  # why it was not run, or ""
    folder: Path
    kernel_log: list[str]
    dumps: Future[list[Dump]] | None


class Campaign:
    """`run(scene)` for each, then `finish()`; `stop` is asked often and ends a scene at once. `read` is
    called for each finished scene with the scene, its folder and the debugger's seconds."""

    def __init__(
        self,
        programs: dict[str, Path],
        python: str,
        work: Path,
        stop: Callable[[], bool],
        read: Callable[[Scene, Path, float], list[Dump]] = harvest,
    ) -> None:
        self.records: list[Record] = []
        self._read = read
        self._programs, self._python, self._work, self._stop = programs, python, work, stop
        self._pool = ThreadPoolExecutor(max(1, min(6, (os.cpu_count() or 2) - 1)))
        self._kernel_log = KernelLog()
        self._waiting: dict[str, subprocess.Popen[bytes]] = {}

    def skip(self, scene: Scene, why: str) -> None:
        self.records.append(Record(scene, None, why, self._work, [], None))

    def prepare(self, coming: list[Scene]) -> None:
        """Starts the next PyTorch scenes: they import, then wait for their gate before they touch the GPU."""
        soon = [scene for scene in coming if scene.program == "torch"][:AHEAD]
        for scene in soon:
            if scene.name not in self._waiting and not self._stop():
                self._waiting[scene.name] = self._launch(scene)

    def _launch(self, scene: Scene) -> subprocess.Popen[bytes]:
        folder = self._work / scene.name
        folder.mkdir(parents=True)
        program = self._programs.get(scene.build)
        torch_program = str(HERE / "torch_faults.py")
        argv = (
            [self._python, torch_program, scene.scene]
            if scene.program == "torch"
            else [str(program), scene.scene]
        )
        environment = dump_environment(os.environ, folder, scene.dump)
        environment["TRITON_CACHE_DIR"] = str(self._work / "triton-cache")
        environment["FAULTS_GATE"] = str(folder / "gate")
        return launch(argv, environment, folder)

    def run(self, scene: Scene) -> Run:
        folder = self._work / scene.name
        process = self._waiting.pop(scene.name, None) or self._launch(scene)
        self._kernel_log.new_lines()
        (folder / "gate").touch()
        run = watch(scene, process, folder, self._stop)
        lines = self._kernel_log.new_lines()
        dumps = self._pool.submit(self._read, scene, folder, SLOWEST_DEBUGGER)
        self.records.append(Record(scene, run, "", folder, lines, dumps))
        return run

    def finish(self, deadline: float) -> list[dict[str, Any]]:
        """Waits for the readers until `deadline` (monotonic); returns one manifest entry for each scene."""
        for process in self._waiting.values():
            kill(process)
        rows = [self._entry(record, deadline) for record in self.records]
        self._pool.shutdown(wait=False, cancel_futures=True)
        return rows

    def _entry(self, record: Record, deadline: float) -> dict[str, Any]:
        entry: dict[str, Any] = {"name": record.scene.name, "expect": record.scene.facts}
        if record.run is None:
            return {**entry, "verdict": f"not run: {record.why}", "files": []}
        run, dumps, trouble = record.run, [], None
        if record.dumps is not None:
            try:
                dumps = record.dumps.result(timeout=max(0.0, deadline - time.monotonic()))
            except Exception as error:  # noqa: BLE001 (one scene's trouble must not lose the others)
                trouble = f"{type(error).__name__}: {error}"
        entry.update(
            planted=planted_facts(run.stdout),
            run={
                "exit": run.exit_code,
                "seconds": round(run.seconds, 2),
                "triggered": run.triggered,
                "killed": run.killed,
                "kernel_log": record.kernel_log[:40],
            },
            driver_log=log_facts(run.stderr),
            dumps=[_dump_entry(dump) for dump in dumps],
            verdict=trouble or judge(record.scene, run, dumps),
            files=self._files(record, dumps),
        )
        return entry

    @staticmethod
    def _files(record: Record, dumps: list[Dump]) -> list[Item]:
        name, run = record.scene.name, record.run
        assert run is not None
        files = []
        for kind, text in (("driver-log", run.stderr), ("program-log", run.stdout)):
            path = record.folder / f"{kind}.txt"
            path.write_text(text)
            files.append(Item(f"{kind}/{name}.txt", path))
        for dump in dumps:
            if dump.debugger:
                files.append(Item(f"debugger/{dump.name}.txt", dump.debugger))
            if dump.compressed:
                files.append(Item(f"cores/{dump.name}.core.xz", dump.compressed))
        return files


def _dump_entry(dump: Dump) -> dict[str, Any]:
    return {
        "name": dump.name,
        "file": f"cores/{dump.name}.core.xz" if dump.compressed else None,
        "bytes": dump.bytes,
        "compressed_bytes": dump.compressed.stat().st_size if dump.compressed else None,
        "sha256": dump.sha256,
        "debugger": dump.debugger_ending,
        **dump.observed,
    }


def say(text: str) -> None:
    print(text, flush=True, file=sys.stdout)
