"""Run directories that `crashlab soak` left around the real vLLM 0.25.1 on an H200: planted bugs against verdicts.

Recorded with scripts/gpu/accept_soak.py (driver 580.159.04, CUDA 13.0): a plug-in whose Triton kernel
`planted_epilogue_store` stores out of bounds after 3,000 launches, or spins; a plug-in that makes every activation
NaN. ``tests/data/soak/runs`` has the records without the reports; `dumps.tar.xz` the GPU dumps of two of them.
"""

from __future__ import annotations

import io
import lzma
import tarfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from crashlab.cli import exitcode
from crashlab.facts import Report
from crashlab.report.fromrundir import analyze_rundir
from crashlab.report.options import AnalyzeOptions
from crashlab.report.text import render
from crashlab.rundir.reader import open_run

DATA = Path(__file__).resolve().parents[2] / "data" / "soak" / "runs"
OPTIONS = AnalyzeOptions(debugger="never")


class Planted(NamedTuple):
    """What was planted. ``code`` is the exit code with the dump, ``dump`` its name in the run directory."""

    kind: str
    code: int
    graphs: str
    dump: str | None = None


RUNS = {
    "fault": Planted("gpu-fault", 10, "CUDA graphs were off"),
    "fault-graphs": Planted("gpu-fault", 10, "CUDA graphs were captured", "vm.1175.1796023932.nvcudmp"),
    "fault-again": Planted("gpu-fault", 10, "CUDA graphs were off"),
    "stall": Planted("stall", 12, "CUDA graphs were off", "vm.28847.1796023568.nvcudmp"),
    "garbage": Planted("garbage", 13, "CUDA graphs were off"),
}
WITH_DUMP = [name for name, planted in RUNS.items() if planted.dump]


def _unpack(archive: str, place: Path) -> None:
    data = lzma.decompress((DATA / archive).read_bytes())
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar.getmembers():
            if member.isfile():
                target = place / member.name
                target.parent.mkdir(parents=True, exist_ok=True)
                source = tar.extractfile(member)
                assert source is not None
                target.write_bytes(source.read())


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All run directories, with the dumps that are kept."""
    place = tmp_path_factory.mktemp("soaks")
    for name in RUNS:
        _unpack(f"{name}.tar.xz", place)
    _unpack("dumps.tar.xz", place)
    for name in WITH_DUMP:
        (place / name / "cores").mkdir()
        (place / f"{name}.nvcudmp").rename(place / name / "cores" / str(RUNS[name].dump))
    return place


@cache
def report(folder: Path) -> Report:
    return analyze_rundir(str(folder), OPTIONS)


@pytest.mark.parametrize("name", RUNS)
def test_the_verdict_is_what_was_planted(folders: Path, name: str) -> None:
    found = report(folders / name)
    assert found.verdict.kind == RUNS[name].kind
    if RUNS[name].dump or RUNS[name].kind == "garbage":
        assert exitcode.of_report(found) == RUNS[name].code


@pytest.mark.parametrize("name", WITH_DUMP)
def test_kernel_instruction_and_source_line_are_the_planted_ones(folders: Path, name: str) -> None:
    verdict = report(folders / name).verdict
    assert verdict.kernel is not None
    assert verdict.kernel.name == "planted_epilogue_store"
    assert verdict.source is not None
    assert (verdict.source.file, verdict.source.line) == (
        "/opt/plant/plant.py",
        13 if name == "stall" else 16,
    )
    assert verdict.instruction is not None
    if name == "stall":
        assert verdict.hang is not None
        (group,) = verdict.hang.groups
        assert (group.warps, group.state) == (32, "spinning")
    else:
        assert verdict.instruction.text == "@!P0 STG.E.U16 desc[UR6][R4.64], R13"


def test_the_address_is_that_of_one_thread_two_tebibytes_away(folders: Path) -> None:
    address = report(folders / "fault-graphs").verdict.address
    assert address is not None
    bad = [lane for lane in address.per_lane if lane.bad]
    assert [lane.thread.x for lane in bad if lane.thread] == [77]
    good = [int(lane.address) for lane in address.per_lane if not lane.bad and lane.address is not None]
    assert address.value is not None
    assert (
        int(address.value) - min(good) == (1 << 41) + 13 * 2
    )  # the plug-in adds 2**40 elements of two bytes


def test_a_stray_lane_is_no_sure_sign_of_a_stale_graph(folders: Path) -> None:
    found = {match.id: match for match in report(folders / "fault-graphs").signatures}
    stale = found["GRAPH-SCRATCH-UAF"]
    assert stale.status == "possible"
    assert stale.hypotheses[0].cause == "consistent with an index error of the kernel itself"
    text = " ".join(render(report(folders / "fault-graphs")).split())
    assert "rather consistent with an index error of the kernel itself" in text
    assert "retire scratch buffers" not in text


@pytest.mark.parametrize("name", RUNS)
def test_the_server_s_log_tells_whether_graphs_were_on(folders: Path, name: str) -> None:
    notes = " ".join(report(folders / name).provenance)
    assert RUNS[name].graphs in notes
    assert "vLLM 0.25.1 with model tiny was ready" in notes


@pytest.mark.parametrize("name", ["fault", "fault-graphs", "fault-again"])
def test_the_server_ended_with_exit_code_0_and_blamed_only_its_engine(folders: Path, name: str) -> None:
    found = report(folders / name)
    assert found.run is not None
    assert found.run.exit_code == 0
    assert found.host is not None
    assert found.host.reported is not None
    assert "EngineDeadError" in str(found.host.reported.text)


def test_a_stall_was_seen_while_health_said_200(folders: Path) -> None:
    run = open_run(str(folders / "stall"))
    (stall,) = [event for event in run.events if event.kind == "soak-stall"]
    assert stall.number("health") == 200
    assert [event.fields["ok"] for event in run.events if event.kind == "asked-for-dump"] == [True]
    stacks = "".join(path.read_text() for path in (folders / "stall" / "host").glob("*stack*"))
    assert "cudaEventSynchronize" in stacks


def test_garbage_names_examples_and_the_first_bad_request(folders: Path) -> None:
    notes = report(folders / "garbage").provenance
    assert len([note for note in notes if note.startswith("Example of a bad answer")]) == 1
    assert any("first: request" in note for note in notes)


@pytest.mark.parametrize("name", ["fault-graphs", "stall", "garbage"])
def test_the_page_about_soaks_shows_what_is_said_of_these_runs(folders: Path, name: str) -> None:
    page = (DATA.parents[3] / "docs" / "how-to" / "soak.md").read_text()
    assert f"```\n{render(report(folders / name)).rstrip()}\n```\n" in page


@pytest.mark.parametrize("name", RUNS)
def test_the_kernel_log_of_a_busy_machine_is_a_few_lines(folders: Path, name: str) -> None:
    """Other processes failed on the same GPU at the same time: up to 1,600 Xid lines beside one soak."""
    text = render(report(folders / name), verbose=True)
    assert text.count("kernel log") <= 8
