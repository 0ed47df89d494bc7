"""What is sent to a node and brought home, without a cluster."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from crashlab.errors import MissingTool, ToolFailed, UsageError
from crashlab.sweep import raycluster
from crashlab.sweep.facts import FAULT
from crashlab.sweep.job import Job
from crashlab.sweep.plan import Remote
from tests.support.fakesweep import FakeServers
from tests.unit.sweep.test_runner import job


class _Errors:
    class RayError(Exception):
        pass

    class RayTaskError(RayError):
        def __init__(self, cause: Exception) -> None:
            super().__init__(str(cause))
            self.cause = cause

    class NodeDiedError(RayError):
        pass


class FakeRay:
    """Runs a task when its result is asked for; ``fate`` says what becomes of the next ones."""

    exceptions = _Errors

    def __init__(self, gpus: float = 2.0) -> None:
        self.gpus, self.fate, self.cancelled = gpus, [], []
        self.asked: dict[str, Any] = {}

    def is_initialized(self) -> bool:
        return True

    def cluster_resources(self) -> dict[str, float]:
        return {"GPU": self.gpus, "CPU": 8.0}

    def nodes(self) -> list[dict[str, Any]]:
        return [{"NodeID": "a", "Alive": True}, {"NodeID": "b", "Alive": False}]

    def remote(self, **asked: Any) -> Any:
        self.asked = asked

        def wrap(function: Any) -> Any:
            class Task:
                @staticmethod
                def remote(*arguments: Any) -> Any:
                    return lambda: function(*arguments)

                @staticmethod
                def options(**_: Any) -> Any:
                    return Task

            return Task

        return wrap

    def wait(self, references: list[Any], *, num_returns: int, timeout: float) -> tuple[list[Any], list[Any]]:
        return references[:num_returns], references[num_returns:]

    def get(self, reference: Any) -> Any:
        fate = self.fate.pop(0) if self.fate else None
        if fate is not None:
            raise fate
        return reference()

    def cancel(self, reference: Any, *, force: bool) -> None:
        self.cancelled.append(reference)

    def get_runtime_context(self) -> Any:
        class Context:
            @staticmethod
            def get_node_id() -> str:
                return "node-of-ray"

        return Context


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    made = FakeRay()
    monkeypatch.setattr(raycluster, "need_ray", lambda: made)
    monkeypatch.setattr(raycluster, "run_job", FakeServers().run)
    monkeypatch.setattr(raycluster.RayCluster, "_strategy", lambda self, node: None)
    return made


def test_a_run_comes_home_with_its_evidence(ray: FakeRay, tmp_path: Path) -> None:
    backend = raycluster.RayCluster(Remote(memory_gb=2.0))
    assert backend.slots == 2
    assert ray.asked == {"num_gpus": 1.0, "num_cpus": 1.0, "max_retries": 0, "memory": 2 << 30}
    one = job(tmp_path, "baseline")
    backend.start(one)
    (done,) = backend.wait(0.1)
    assert done.result is not None
    assert (done.result.outcome, done.result.machine) == (FAULT, "node 1")
    assert (tmp_path / one.rundir / "report.json").is_file()
    assert backend.wait(0.0) == []
    backend.close()


def test_a_dead_nodes_run_is_lost_and_an_error_of_the_plan_ends_the_sweep(
    ray: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = raycluster.RayCluster(Remote())
    ray.fate = [_Errors.NodeDiedError(), _Errors.RayTaskError(ValueError("odd"))]
    for _ in range(2):
        backend.start(job(tmp_path, "baseline"))
    lost, error = (*backend.wait(0.1), *backend.wait(0.1))
    assert "NodeDiedError" in (lost.lost or "")
    assert isinstance(error.error, ToolFailed)

    def refuse(*_: Any) -> Any:
        raise UsageError("no such shape", hint="mend it")

    monkeypatch.setattr(raycluster, "run_job", refuse)
    backend.start(job(tmp_path, "baseline"))
    (done,) = backend.wait(0.1)
    assert isinstance(done.error, UsageError)
    assert done.error.hint == "mend it"

    def nothing(*_: Any) -> Any:
        raise ToolFailed("left nothing")

    monkeypatch.setattr(raycluster, "run_job", nothing)
    backend.start(job(tmp_path, "baseline"))
    assert backend.wait(0.1)[0].lost == "left nothing"
    backend.start(job(tmp_path, "baseline"))
    backend.stop()
    assert len(ray.cancelled) == 1
    backend.close()


def test_a_cluster_without_room_says_what_it_has(ray: FakeRay) -> None:
    ray.gpus = 0.0
    with pytest.raises(MissingTool, match="0 GPUs"):
        raycluster.RayCluster(Remote())
    assert raycluster.RayCluster(Remote(gpus=0.0)).slots == 8
    assert raycluster.RayCluster(Remote(gpus=0.0, parallel=3)).slots == 3


def test_no_cluster_is_an_error_with_a_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    class Nobody(FakeRay):
        def is_initialized(self) -> bool:
            return False

        def init(self, **_: Any) -> None:
            raise ConnectionError("nobody there")

    monkeypatch.setattr(raycluster, "need_ray", Nobody)
    with pytest.raises(MissingTool, match="nobody there") as error:
        raycluster.connect("auto")
    assert "ray start" in (error.value.hint or "")


def test_a_replayed_log_travels_with_the_run(
    ray: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "requests.jsonl"
    log.write_text("recorded")
    seen: list[str] = []

    def look(one: Job, *_: Any) -> Any:
        seen.append(Path(one.options[one.options.index("--replay") + 1]).read_text())
        return FakeServers().run(one)

    monkeypatch.setattr(raycluster, "run_job", look)
    backend = raycluster.RayCluster(Remote())
    one = job(tmp_path, "baseline")
    backend.start(one._replace(options=(*one.options, "--replay", str(log))))
    assert backend.wait(0.1)[0].result is not None
    assert seen == ["recorded"]


def test_what_is_too_large_stays_on_the_node_and_is_named(tmp_path: Path) -> None:
    place = tmp_path / "arms" / "0001-a"
    (place / "cores").mkdir(parents=True)
    (place / "report.json").write_text("{}")
    (place / "cores" / "big").write_bytes(bytes(100_000))
    os.mkfifo(place / "pipe")
    content, left = raycluster.pack(str(tmp_path), 50_000)
    assert left == ["arms/0001-a/cores/big"]
    home = tmp_path / "home"
    raycluster.unpack(content, str(home))
    assert (home / "arms" / "0001-a" / "report.json").read_text() == "{}"


def test_names_that_lead_out_of_the_folder_are_not_written(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name in ("../evil", "/evil", "arms/ok"):
            info = tarfile.TarInfo(name)
            info.size = 1
            tar.addfile(info, io.BytesIO(b"x"))
        link = tarfile.TarInfo("arms/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    raycluster.unpack(out.getvalue(), str(tmp_path / "home"))
    assert [str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()] == ["home/arms/ok"]
