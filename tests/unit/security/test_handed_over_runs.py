"""A run directory that somebody else made: nothing outside it is read, nothing in it can block."""

from __future__ import annotations

import io
import json
import lzma
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from crashlab.report.fromrundir import analyze_rundir
from crashlab.report.options import AnalyzeOptions
from crashlab.rundir import lines
from crashlab.rundir.manifest import build_manifest
from crashlab.rundir.output import pieces
from crashlab.rundir.reader import open_run
from crashlab.soak.prompts import Source
from crashlab.soak.replay import load_replay
from tests.support import corpus
from tests.support.command import run_cli

FAST = AnalyzeOptions(fast=True)
RUN = Path(__file__).resolve().parents[2] / "data" / "runs" / "cuda-c.tar.xz"
CANARY = "canary-7f3a91"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A recorded run directory, unpacked."""
    place = tmp_path / "handed-over"
    with tarfile.open(fileobj=io.BytesIO(lzma.decompress(RUN.read_bytes()))) as tar:
        for member in tar.getmembers():
            stream = tar.extractfile(member) if member.isfile() else None
            if stream is not None:
                target = place / Path(*Path(member.name).parts[1:])
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(stream.read())
    (place / "report.json").unlink(missing_ok=True)
    return place


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of the victim's that the run directory points at."""
    path = tmp_path / "private" / "diary.log"
    path.parent.mkdir()
    path.write_text(
        f"torch.AcceleratorError: CUDA error: {CANARY}\n"
        f"[1.5] NVRM: Xid (PCI:0000:01:00): 31, pid=9, name={CANARY}, MMU Fault\n"
        f'{{"event": "problem", "what": "{CANARY}", "m": 1.0, "attempt": 1}}\n'
    )
    return path


def everything_said(run: Path, tmp_path: Path) -> str:
    """What analyze, report and bundle say of it, in all forms."""
    out = tmp_path / "out.zip"
    said = [
        run_cli("analyze", str(run), "--debugger", "never", "-v"),
        run_cli("analyze", str(run), "--debugger", "never", "--json"),
        run_cli("report", str(run), "--format", "html"),
        run_cli("bundle", str(run), "-o", str(out)),
    ]
    text = "".join(one.out + one.err for one in said)
    if out.exists():
        with zipfile.ZipFile(out) as archive:
            text += "".join(archive.read(name).decode("utf-8", "replace") for name in archive.namelist())
    return text


@pytest.mark.parametrize(
    "name",
    [
        "events.jsonl", "run.json", "kernel.log", "report.json", "timeline.jsonl", "requests.jsonl",
        "output/001.stderr.log", "output/001.index.jsonl", "output/002.stdout.log", "host/001-stacks.txt", "more.log",
        "cores/x.nvcudmp",
    ],
)  # fmt: skip
def test_a_link_in_it_is_not_followed(name: str, run: Path, secret: Path, tmp_path: Path) -> None:
    target = run / name
    target.parent.mkdir(exist_ok=True)
    target.unlink(missing_ok=True)
    target.symlink_to(secret)
    assert CANARY not in everything_said(run, tmp_path)


@pytest.mark.parametrize("folder", ["output", "cores", "host", "cases"])
def test_a_folder_that_is_a_link_is_not_followed(
    folder: str, run: Path, secret: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "private"
    for name in ("001.stderr.log", "001.stdout.log", "001-stacks.txt", "x.log"):
        (elsewhere / name).write_bytes(secret.read_bytes())
    if (run / folder).exists():
        (run / folder).rename(tmp_path / "moved")
    (run / folder).symlink_to(elsewhere, target_is_directory=True)
    assert CANARY not in everything_said(run, tmp_path)


def test_only_an_overflow_of_this_user_is_read(run: Path, secret: Path, tmp_path: Path) -> None:
    for name in ("private", f"crashlab-{os.getuid() + 1}-x", f"crashlab-{os.getuid()}-writable"):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        (folder / "001.stderr.+900000.log").write_bytes(secret.read_bytes())
    (tmp_path / f"crashlab-{os.getuid()}-writable").chmod(0o777)
    for name in ("private", f"crashlab-{os.getuid() + 1}-x", f"crashlab-{os.getuid()}-writable"):
        (run / "run.json").write_text(
            json.dumps({"schema": "crashlab.run/1", "overflow": str(tmp_path / name)})
        )
        assert not any(CANARY.encode() in piece.data for piece in pieces(open_run(run), 1)), name


def dump_event(run: Path, path: str, size: int | None) -> None:
    event = {"event": "dump", "path": path, "attempt": 1, "state": "final", "m": 2.0}
    (run / "events.jsonl").write_text(
        json.dumps({**event, **({} if size is None else {"bytes": size})}) + "\n"
    )
    for path_ in (run / "cores").iterdir():
        path_.unlink()


def test_a_dump_elsewhere_counts_only_if_it_is_the_one_that_was_recorded(run: Path) -> None:
    """CUDA_COREDUMP_FILE may be the user's own and lead anywhere; then its size is on record."""
    dump = corpus.path("oob_load")
    size = dump.stat().st_size
    dump_event(run, str(dump), size)
    report = analyze_rundir(run, FAST)
    assert report.verdict.kind == "gpu-fault"
    assert any("outside the run directory" in note for note in report.provenance)
    for given in (None, size - 1):
        dump_event(run, str(dump), given)
        report = analyze_rundir(run, FAST)
        assert report.inputs == () or report.inputs[0].path != dump.name
        assert any("another size than was recorded" in note for note in report.provenance)


def test_a_relative_path_cannot_lead_out(run: Path) -> None:
    dump = corpus.path("oob_load")
    dump_event(run, os.path.relpath(dump, run), None)
    assert any("not read" in note for note in analyze_rundir(run, FAST).provenance)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "name",
    ["events.jsonl", "kernel.log", "report.json", "timeline.jsonl", "requests.jsonl", "output/001.stderr.log",
     "output/001.index.jsonl", "cores/x.nvcudmp", "host/x.txt", "gpu.jsonl"],
)  # fmt: skip
def test_a_pipe_in_it_does_not_block(name: str, run: Path, tmp_path: Path) -> None:
    target = run / name
    target.parent.mkdir(exist_ok=True)
    target.unlink(missing_ok=True)
    os.mkfifo(target)
    everything_said(run, tmp_path)
    build_manifest(str(run))
    with pytest.raises(Exception, match="cannot be replayed"):
        load_replay(str(run), Source())


def test_reading_it_changes_nothing(run: Path, tmp_path: Path) -> None:
    def state() -> list[tuple[str, int, int]]:
        found = [(str(p), p.lstat().st_size, p.lstat().st_mtime_ns) for p in sorted(run.rglob("*"))]
        return [*found, (str(run), 0, run.stat().st_mtime_ns)]

    before = state()
    everything_said(run, tmp_path)
    assert state() == before


def test_a_record_of_gigabytes_is_read_up_to_a_limit(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "_MAX_BYTES", 1 << 20)
    record = json.dumps({"event": "note", "what": "x" * 1000}) + "\n"
    (run / "events.jsonl").write_text(record * 3000)
    found = open_run(run)
    assert len(found.events) == (1 << 20) // len(record)
    assert any("the rest was not read" in problem for problem in found.problems)
