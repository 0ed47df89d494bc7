"""Runs as tasks of a Ray cluster: GPU resources by Ray, evidence brought home, a dead node's run made again.

A task is never retried by Ray itself: the sweep's journal is to know of every attempt.
"""

from __future__ import annotations

import io
import os
import shutil
import tarfile
import tempfile
import time
from collections.abc import Mapping
from typing import Any

from crashlab.errors import CrashlabError, MissingTool, ToolFailed, UsageError
from crashlab.sweep import leftovers
from crashlab.sweep.backend import Done
from crashlab.sweep.execute import run_job
from crashlab.sweep.job import Job
from crashlab.sweep.plan import Remote
from crashlab.sweep.setting import filled


def need_ray() -> Any:
    """The ray package. Raises MissingTool with how to get it."""
    import importlib

    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise MissingTool(
            "Runs on a cluster need the package ray, which is not installed.",
            hint="pip install 'crashlab[ray]', on every node in the same version as the cluster's.",
        ) from error


def connect(address: str) -> Any:
    """The ray package, connected to a cluster. Raises MissingTool without either."""
    ray = need_ray()
    if not ray.is_initialized():
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise MissingTool(
                f"No Ray cluster at {address!r}: {str(error)[:200]}",
                hint="Start one with 'ray start --head', or name it with --ray-address.",
            ) from error
    return ray


class RayCluster:
    """Connects on construction. ``slots``: the plan's ``parallel``, or as many runs as the cluster has room
    for."""

    def __init__(self, remote: Remote, address: str = "auto") -> None:
        self._ray = ray = connect(address)
        self._remote = remote
        self._jobs: dict[Any, Job] = {}
        self._nodes: dict[str, str] = {}
        self._lost: list[str] = []
        self.slots = remote.parallel or self._room()
        resources: dict[str, Any] = {"num_gpus": remote.gpus, "num_cpus": remote.cpus, "max_retries": 0}
        if remote.memory_gb is not None:
            resources["memory"] = int(remote.memory_gb * 2**30)
        self._task = ray.remote(**resources)(on_node)

    def start(self, job: Job) -> None:
        """Hand a run to the cluster."""
        replay = _replay_of(job)
        content = None
        if replay is not None:
            with open(replay, "rb") as file:
                content = file.read()
        limit = self._remote.max_artifacts_mb << 20
        reference = self._task.remote(job, content, tuple(self._lost), limit)
        self._jobs[reference] = job

    def wait(self, seconds: float) -> list[Done]:
        """Results since the last call; a run whose node died is lost."""
        if not self._jobs:
            time.sleep(seconds)
            return []
        ready, _ = self._ray.wait(list(self._jobs), num_returns=1, timeout=seconds)
        return [self._settle(reference, self._jobs.pop(reference)) for reference in ready]

    def stop(self) -> None:
        """Cancel every run: what it recorded stays on its node."""
        for reference, job in list(self._jobs.items()):
            self._ray.cancel(reference, force=True)
            self._lost.append(job.token)

    def close(self) -> None:
        """End what was left behind on the nodes by runs that were lost."""
        if self._lost:
            options = {"num_cpus": 0, "max_retries": 0}
            sweepers = [
                self._ray.remote(**options)(_end_all)
                .options(scheduling_strategy=self._strategy(node["NodeID"]))
                .remote(tuple(self._lost))
                for node in self._ray.nodes()
                if node.get("Alive")
            ]
            if sweepers:
                self._ray.wait(sweepers, num_returns=len(sweepers), timeout=30.0)

    def _settle(self, reference: Any, job: Job) -> Done:
        errors = self._ray.exceptions
        try:
            answer = self._ray.get(reference)
        except errors.RayTaskError as error:
            cause = error.cause if isinstance(error.cause, CrashlabError) else ToolFailed(str(error)[-500:])
            return Done(job, error=cause)
        except (errors.RayError, OSError) as error:
            # A node that died, a worker that was killed, an object lost with its node, a cancelled task.
            self._lost.append(job.token)
            return Done(job, lost=f"its node or worker was lost ({type(error).__name__})")
        if answer["usage"] is not None:
            return Done(job, error=UsageError(*answer["usage"][:1], hint=answer["usage"][1]))
        if answer["result"] is None:
            return Done(job, lost=answer["lost"])
        unpack(answer["files"], job.folder)
        machine = self._nodes.setdefault(answer["node"], f"node {len(self._nodes) + 1}")
        note = answer["result"].note
        if answer["left_out"]:
            note = "; ".join(
                filter(None, (note, f"left on its node for size: {', '.join(answer['left_out'])}"))
            )
        return Done(job, answer["result"]._replace(machine=machine, note=note))

    def _room(self) -> int:
        have: Mapping[str, float] = self._ray.cluster_resources()
        wanted = {"GPU": self._remote.gpus, "CPU": self._remote.cpus}
        rooms = [int(have.get(name, 0.0) // amount) for name, amount in wanted.items() if amount]
        if rooms and min(rooms) < 1:
            raise MissingTool(
                f"The cluster has {have.get('GPU', 0):g} GPUs and {have.get('CPU', 0):g} CPUs; a run asks for "
                f"{self._remote.gpus:g} and {self._remote.cpus:g}.",
                hint="Add nodes, or lower gpus and cpus in the plan's [remote].",
            )
        return max(1, min(rooms, default=1))

    def _strategy(self, node: str) -> Any:
        import importlib

        strategies = importlib.import_module("ray.util.scheduling_strategies")
        return strategies.NodeAffinitySchedulingStrategy(node_id=node, soft=True)


def on_node(job: Job, replay: bytes | None, lost: tuple[str, ...], limit: int) -> dict[str, Any]:
    """Runs on a node, in a folder of its own; the answer carries the evidence as a tar file.

    ``lost``: marks of runs whose watcher died: what is left of them here would hold the GPU.
    """
    _end_all(lost)
    folder = tempfile.mkdtemp(prefix="crashlab-sweep-")
    answer: dict[str, Any] = {"result": None, "lost": None, "usage": None, "files": b"", "left_out": []}
    answer["node"] = need_ray().get_runtime_context().get_node_id()
    try:
        if replay is not None:
            path = os.path.join(folder, "replay.jsonl")
            with open(path, "wb") as file:
                file.write(replay)
            job = _with_replay(job, path)
        cwd = job.cwd if os.path.isdir(job.cwd) else folder
        try:
            answer["result"] = run_job(job._replace(folder=folder, cwd=cwd))
        except ToolFailed as error:
            answer["lost"] = str(error)
        except UsageError as error:
            answer["usage"] = (str(error), error.hint)
        answer["files"], answer["left_out"] = pack(folder, limit)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return answer


def _end_all(tokens: tuple[str, ...]) -> None:
    for token in tokens:
        leftovers.end(token)


def pack(folder: str, limit: int) -> tuple[bytes, list[str]]:
    """(runs and what stands beside them as a tar file, names that would have gone beyond ``limit`` bytes).

    Small files first: a report is worth more than the last dump.
    """
    files = []
    for top in ("arms", "side"):
        for place, folders, names in os.walk(os.path.join(folder, top)):
            folders.sort()
            files += [os.path.join(place, name) for name in sorted(names)]
    regular = [
        (os.path.getsize(path), path) for path in files if os.path.isfile(path) and not os.path.islink(path)
    ]
    out, left, total = io.BytesIO(), [], 0
    with tarfile.open(fileobj=out, mode="w") as tar:
        for size, path in sorted(regular):
            name = os.path.relpath(path, folder)
            if total + size > limit:
                left.append(name)
                continue
            total += size
            tar.add(path, arcname=name, recursive=False)
    return out.getvalue(), left


def unpack(content: bytes, folder: str) -> None:
    """Write the files of such a tar below ``folder``; names that lead out of it are refused."""
    root = os.path.abspath(folder)
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        for member in tar:
            target = os.path.abspath(os.path.join(root, member.name))
            source = tar.extractfile(member) if member.isreg() else None
            if source is None or not target.startswith(root + os.sep):
                continue
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as file:
                shutil.copyfileobj(source, file)


def _replay_of(job: Job) -> str | None:
    """The log that the run replays, as a file on this machine."""
    options = list(job.options)
    if "--replay" not in options:
        return None
    path = options[options.index("--replay") + 1]
    return os.path.join(path, "requests.jsonl") if os.path.isdir(path) else path


def _with_replay(job: Job, path: str) -> Job:
    options = list(job.options)
    options[options.index("--replay") + 1] = path
    return job._replace(options=filled(options, {}))
