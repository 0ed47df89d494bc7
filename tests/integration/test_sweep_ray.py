"""``crashlab sweep --on ray`` and ``analyze --on ray`` on a local cluster of three nodes, one of which dies."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crashlab.sweep import journal, leftovers
from crashlab.sweep.plan import Plan, read_plan
from crashlab.sweep.probe import Server
from crashlab.sweep.runner import Sweep, SweepFolder
from crashlab.sweep.schedule import CLEAN, DIFFERS, FAULTS, standings
from tests.support.demosweep import GUILTY, HARMLESS, IGNORED, PLAN, demo_command

ray = pytest.importorskip("ray", reason="the package ray is not installed: pip install 'crashlab[ray]'")
pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    made = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "num_gpus": 0, "include_dashboard": False}
    )
    yield made
    ray.shutdown()
    made.shutdown()


def _plan() -> Plan:
    return read_plan(PLAN, "plan.toml", command=demo_command())


@pytest.mark.timeout(900)
def test_a_sweep_on_three_nodes_of_which_one_dies_ends_with_the_same_table(
    cluster: Any, tmp_path: Path
) -> None:
    from crashlab.sweep.raycluster import RayCluster

    nodes = [cluster.add_node(num_cpus=1, num_gpus=1) for _ in range(3)]
    plan = _plan()
    folder = SweepFolder.open(str(tmp_path / "sweep"), plan, str(tmp_path))
    said: list[str] = []
    killed = threading.Event()

    def kill_one() -> None:
        while len(journal.read(folder.path).ended) < 4 or (busy := _busy_node(nodes, folder.path)) is None:
            time.sleep(0.1)
        cluster.remove_node(busy, allow_graceful=False)
        killed.set()

    backend = RayCluster(plan.remote, cluster.address)
    assert backend.slots == 3
    sweep = Sweep(plan, folder, backend, Server(_demo_options()), said.append)
    threading.Thread(target=kill_one, daemon=True).start()
    result = sweep.go()
    folder.close()
    assert killed.is_set()
    record = journal.read(folder.path)
    assert record.lost, "\n".join(said)
    assert not record.open
    states = {one.arm.name.partition("=")[0]: one.state for one in standings(plan, result.runs)}
    assert all(states[lever] == CLEAN for lever in GUILTY), states
    assert all(states[lever] == FAULTS for lever in HARMLESS), states
    assert states[IGNORED] == DIFFERS
    assert {run.machine for run in result.runs} >= {"node 1", "node 2"}
    for run in result.runs:
        assert run.rundir is not None
        report = json.loads((tmp_path / "sweep" / run.rundir / "report.json").read_text())
        assert report["schema"] == "crashlab.report/1"


def _busy_node(nodes: list[Any], folder: str) -> Any | None:
    """A node that has a run under way: the run's process descends from the node's raylet."""
    import psutil

    raylets = {node.all_processes["raylet"][0].process.pid: node for node in nodes}
    for one in journal.read(folder).open:
        for pid in leftovers.marked(one.token):
            try:
                parents = psutil.Process(pid).parents()
            except psutil.Error:
                continue
            for parent in parents:
                if parent.pid in raylets:
                    return raylets[parent.pid]
    return None


def _demo_options() -> frozenset[str]:
    from crashlab.sweep.probe import ask
    from tests.support.demosweep import environment

    found = ask(demo_command(), environment())
    assert found.options is not None
    return found.options


@pytest.mark.timeout(300)
def test_a_folder_of_dumps_is_grouped_on_the_cluster_as_it_is_here(cluster: Any, tmp_path: Path) -> None:
    from functools import partial

    from crashlab.report.groups import analyze_folder
    from crashlab.report.groupwork import read_here, read_on_ray
    from crashlab.report.options import AnalyzeOptions

    cluster.add_node(num_cpus=2, num_gpus=0)
    for number, path in enumerate(sorted(Path("tests/data/dumps").glob("*.xz"))[:12]):
        (tmp_path / f"{number:02d}.core.xz").write_bytes(path.read_bytes())
    (tmp_path / "99.nvcudmp").write_bytes(b"\x7fELF and nothing more")
    options = AnalyzeOptions(fast=True)
    there = analyze_folder(str(tmp_path), options, partial(read_on_ray, address=cluster.address))
    here = analyze_folder(str(tmp_path), options, partial(read_here, jobs=1))
    assert there._replace(created="") == here._replace(created="")
    assert len(there.groups) > 3
