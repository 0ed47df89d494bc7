"""Run directories that `crashlab run` left on an H200 (driver 580.159, CUDA 13.0): planted faults against verdicts.

Recorded with scripts/gpu/accept_run.py; ``tests/data/runs`` has the record and the light dumps, not the reports.
"""

from __future__ import annotations

import io
import lzma
import re
import tarfile
from pathlib import Path
from typing import NamedTuple

import pytest

from crashlab.cli import exitcode
from crashlab.facts import Report
from crashlab.report.fromrundir import analyze_rundir
from crashlab.report.options import AnalyzeOptions
from crashlab.rundir.reader import open_run

DATA = Path(__file__).resolve().parents[2] / "data" / "runs"
FAST = AnalyzeOptions(sass_by="native", debugger="never")


class Planted(NamedTuple):
    """What a program did. ``told``: the thread's registers survived, so its address must come out."""

    kind: str
    exception: int | None
    kernel: str | None
    code: int
    told: bool = False


RUNS = {
    "cuda-c": Planted("gpu-fault", 14, "oob_load", 10, told=True),
    "graph": Planted("gpu-fault", 14, "scatter_oob", 10),
    "assert": Planted("device-assert", 12, "assert_kernel", 10),
    "torch-triton": Planted("gpu-fault", 14, "masked_store", 10),
    "two-of-three": Planted("gpu-fault", 14, "oob_load", 10, told=True),
    "restart": Planted("gpu-fault", 14, "oob_load", 10, told=True),
    "no-dump": Planted("gpu-fault", None, None, 11),
    "dumps-off": Planted("gpu-fault", None, None, 11),
    # Its dump of 4 GiB was read on the spot and is no part of the fixture: the driver's lines remain.
    "sigterm-in-dump": Planted("gpu-fault", 14, "oob_load", 11),
    "hang": Planted("hang", None, "hang_kernel", 12),
    "torch-hang": Planted("hang", None, "spin_on_flag", 12),
}


def unpack(name: str, place: Path) -> Path:
    with tarfile.open(fileobj=io.BytesIO(lzma.decompress((DATA / f"{name}.tar.xz").read_bytes()))) as tar:
        for member in tar.getmembers():
            source = tar.extractfile(member)
            assert source is not None
            target = place / member.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read())
    return place / name


def planted_address(folder: Path, attempt: int = 1) -> int:
    """What the program said before its first fault."""
    said = (folder / "output" / f"{attempt:03d}.stdout.log").read_text()
    found = re.search(r"^FACT bad_address (0x[0-9a-f]+)$", said, re.MULTILINE)
    assert found is not None
    return int(found.group(1), 16)


def address(report: Report) -> int | None:
    return report.verdict.address.value if report.verdict.address is not None else None


def test_every_recorded_run_has_its_truth() -> None:
    assert {path.name.removesuffix(".tar.xz") for path in DATA.glob("*.tar.xz")} == set(RUNS)


@pytest.mark.parametrize("name", RUNS)
def test_the_verdict_is_what_was_planted(name: str, tmp_path: Path) -> None:
    planted = RUNS[name]
    folder = unpack(name, tmp_path)
    report = analyze_rundir(folder, FAST)
    verdict = report.verdict
    assert verdict.kind == planted.kind
    assert (verdict.exception.code if verdict.exception is not None else None) == planted.exception
    kernel = verdict.kernel.name if verdict.kernel is not None else None
    assert (kernel or "").partition("(")[0] == (planted.kernel or "")
    assert exitcode.of_report(report) == planted.code
    assert address(report) == (planted_address(folder) if planted.told else None)
    assert report.environment is not None
    assert report.environment["driver"].value == "580.159.04"


@pytest.mark.parametrize("name", RUNS)
def test_a_report_made_before_the_run_had_its_end_claims_no_kill(name: str, tmp_path: Path) -> None:
    # crashlab run analyses an attempt before it writes the run's last line.
    folder = unpack(name, tmp_path)
    record = folder / "events.jsonl"
    record.write_text("".join(line for line in record.open() if '"run-ended"' not in line))
    assert open_run(folder).problems == ()


def test_of_three_processes_the_first_fault_is_the_origin_and_the_parent_exited_with_0(
    tmp_path: Path,
) -> None:
    report = analyze_rundir(unpack("two-of-three", tmp_path), FAST)
    assert [case.role for case in report.cases or ()] == ["origin", "sympathetic"]
    assert report.run is not None
    assert report.run.exit_code == 0


def test_each_restart_has_a_verdict_of_its_own(tmp_path: Path) -> None:
    folder = unpack("restart", tmp_path)
    assert open_run(folder).attempts == (1, 2)
    found = [address(analyze_rundir(folder, FAST, attempt)) for attempt in (1, 2)]
    assert found == [planted_address(folder, 1), planted_address(folder, 2)]
    assert found[0] != found[1]


def test_an_error_that_writes_no_dump_is_named(tmp_path: Path) -> None:
    assert "cudaErrorInvalidPc" in analyze_rundir(unpack("no-dump", tmp_path), FAST).verdict.headline


def test_a_program_that_switches_its_dumps_off_is_seen_doing_so(tmp_path: Path) -> None:
    run = open_run(unpack("dumps-off", tmp_path))
    (sample,) = [event for event in run.events if event.kind == "libraries"]
    assert sample.fields["variables"] == {"CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "0"}
    confidence = analyze_rundir(run.path, FAST).verdict.confidence
    assert confidence is not None
    assert any("ran with CUDA_ENABLE_COREDUMP_ON_EXCEPTION=0" in reason for reason in confidence.reasons)


def test_sigterm_waited_for_the_dump(tmp_path: Path) -> None:
    run = open_run(unpack("sigterm-in-dump", tmp_path))
    order = [
        (event.kind, event.text("state"))
        for event in run.events
        if event.kind in ("dump", "signal", "asked-to-end", "killed", "command-ended")
    ]
    assert order[:2] == [("dump", "growing"), ("signal", None)]
    assert ("killed", None) not in order
    assert order[-1] == ("dump", "final")
    (final,) = [event for event in run.events if event.kind == "dump" and event.text("state") == "final"]
    assert (final.number("bytes") or 0) > 4 << 30
    log = (Path(run.path) / "output" / "001.stderr.log").read_bytes()
    assert b"All done" in log


def test_a_dump_that_was_left_behind_is_missed_by_name(tmp_path: Path) -> None:
    report = analyze_rundir(unpack("sigterm-in-dump", tmp_path), FAST)
    assert any("4,305,881,313 bytes" in note and "not there any more" in note for note in report.provenance)


@pytest.mark.parametrize("name", ["hang", "torch-hang"])
def test_a_hang_leaves_a_dump_that_was_asked_for_and_host_stacks(name: str, tmp_path: Path) -> None:
    run = open_run(unpack(name, tmp_path))
    kinds = [event.kind for event in run.events]
    assert (
        kinds.index("hang") < kinds.index("host-stack") < kinds.index("asked-for-dump") < kinds.index("dump")
    )
    (stack,) = [event for event in run.events if event.kind == "host-stack"]
    assert stack.text("how") == ("py-spy --native" if name == "torch-hang" else "kernel")


def test_versions_are_those_of_the_worker(tmp_path: Path) -> None:
    known = analyze_rundir(unpack("torch-hang", tmp_path), FAST).environment or {}
    found = {key: known[key].value for key in ("torch", "torch_cuda", "cudnn", "triton")}
    assert found["torch"] == "2.11.0+cu130"
    assert found["torch_cuda"] == "13.0"
    assert all(found.values())
