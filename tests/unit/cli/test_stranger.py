"""What a stranger broke once stays mended: pipes as inputs, evidence as output, duplicates, full disks."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support import corpus, fake_cuda_gdb
from tests.support.command import run_cli


@pytest.fixture
def fifo(tmp_path: Path) -> str:
    os.mkfifo(tmp_path / "pipe")
    return str(tmp_path / "pipe")


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "arguments",
    [
        ["report", "FIFO"],
        ["bundle", "--check", "FIFO"],
        ["signatures", "match", "FIFO"],
        ["analyze", "FIFO"],
        ["analyze", "DUMP", "--fast", "--log", "FIFO"],
        ["analyze", "DUMP", "--fast", "--env", "FIFO"],
        ["analyze", "--transcript", "FIFO"],
        ["analyze", "DUMP", "--fast", "--log", "/dev/zero"],
    ],
)
def test_a_pipe_or_device_as_input_neither_blocks_nor_never_ends(arguments: list[str], fifo: str) -> None:
    dump = str(corpus.path("oob_load"))
    found = run_cli(*(fifo if a == "FIFO" else dump if a == "DUMP" else a for a in arguments))
    assert found.code in (2, 3)
    assert "not a regular file" in found.err + found.out


def test_a_report_is_never_written_over_its_input(tmp_path: Path) -> None:
    dump = tmp_path / "v.core"
    dump.write_bytes(corpus.raw("oob_load"))
    found = run_cli("report", str(dump), "-o", str(dump))
    assert found.code == 2
    assert dump.read_bytes() == corpus.raw("oob_load")


def test_a_dump_given_twice_is_read_once() -> None:
    dump = str(corpus.path("oob_load"))
    found = run_cli("analyze", "--fast", "-v", dump, dump)
    assert "sympathetic" not in found.out
    assert "read once" in found.out


def test_a_missing_file_is_not_claimed_to_have_been_read() -> None:
    found = run_cli("analyze", "/nonexistent.core")
    assert "read by its bytes" not in found.out
    assert "next " in found.out


def test_a_debugger_that_was_asked_for_and_cannot_run_is_said_so_without_verbose(tmp_path: Path) -> None:
    program = fake_cuda_gdb.install_broken(tmp_path)
    found = run_cli("analyze", "--debugger", program, str(corpus.path("oob_load")))
    assert "cuda_gdb: missing" in found.out


def test_a_bundle_that_cannot_hold_the_dump_refuses(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text(run_cli("analyze", "--fast", "--json", str(corpus.path("oob_load"))).out)
    found = run_cli("bundle", str(report), "--include-dump", "-o", str(tmp_path / "x.zip"))
    assert found.code == 2
    assert "run directory" in found.err


def test_a_bundle_of_a_dump_takes_the_dump_in_when_asked(tmp_path: Path) -> None:
    dump = str(corpus.path("oob_load"))
    assert run_cli("bundle", dump, "--include-dump", "-o", str(tmp_path / "x.zip")).code == 0
    with zipfile.ZipFile(tmp_path / "x.zip") as archive:
        assert "oob_load.core" in archive.namelist()


def test_a_bundle_of_a_dump_holds_the_faulting_cubin_or_says_why_not(tmp_path: Path) -> None:
    found = run_cli("bundle", str(corpus.path("tma")), "-o", str(tmp_path / "x.zip"))
    assert found.code == 0
    with zipfile.ZipFile(tmp_path / "x.zip") as archive:
        assert archive.read("faulting.cubin").startswith(b"\x7fELF")
        assert "tma.core" not in archive.namelist()
    found = run_cli("bundle", str(corpus.path("badpc")), "-o", str(tmp_path / "y.zip"))
    assert "not in it: faulting.cubin: no loaded module" in found.err
    listed = run_cli("bundle", "--check", str(tmp_path / "y.zip"))
    assert "faulting.cubin: no loaded module" in listed.out


def test_a_bundle_of_a_report_alone_says_that_there_is_no_cubin(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text(run_cli("analyze", "--fast", "--json", str(corpus.path("oob_load"))).out)
    found = run_cli("bundle", str(report), "-o", str(tmp_path / "x.zip"))
    assert "not in it: faulting.cubin: there is no readable dump" in found.err


def test_completion_without_a_shell_asks_for_one_in_plain_words() -> None:
    found = run_cli("completion")
    assert found.code == 2
    assert "\\x09" not in found.err
    assert "zsh" in found.err


def test_nothing_is_bundled_of_an_unreadable_file(tmp_path: Path) -> None:
    found = run_cli("bundle", str(corpus.path("cut_short")), "-o", str(tmp_path / "x.zip"))
    assert found.code == 3
    assert not (tmp_path / "x.zip").exists()


def test_a_cut_copy_of_a_compressed_dump_does_not_blame_the_driver(tmp_path: Path) -> None:
    import gzip

    target = tmp_path / "tr.gz"
    target.write_bytes(gzip.compress(corpus.raw("oob_load"))[:300])
    found = run_cli("analyze", str(target))
    assert found.code == 3
    assert "gzip file is cut short" in found.out


def test_zstd_is_named(tmp_path: Path) -> None:
    target = tmp_path / "core.zst"
    target.write_bytes(bytes.fromhex("28b52ffd") + bytes(100))
    assert "zstd" in run_cli("analyze", str(target)).out


def _shell(command: str) -> subprocess.CompletedProcess[str]:
    dump = corpus.path("oob_load")
    script = command.replace("crashlab", f"{sys.executable} -m crashlab").replace("DUMP", str(dump))
    root = Path(__file__).resolve().parents[3]
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", script], capture_output=True, text=True, cwd=root, check=False
    )


def test_a_full_disk_is_no_bug_of_ours() -> None:
    found = _shell("crashlab analyze --fast DUMP > /dev/full")
    assert found.returncode == 3
    assert "No space left" in found.stderr
    assert "bug" not in found.stderr


def test_a_reader_that_goes_away_is_no_error() -> None:
    found = _shell("crashlab inspect DUMP lanes | head -n 1")
    assert found.returncode == 0
    assert found.stderr == ""


def test_an_ascii_terminal_does_not_break_the_page() -> None:
    found = _shell(
        "PYTHONIOENCODING=ascii LC_ALL=C crashlab report DUMP --format html --debugger never | wc -c"
    )
    assert found.returncode == 0
    assert int(found.stdout) > 10_000


def test_a_folder_as_an_input_file_is_called_one(tmp_path: Path) -> None:
    found = run_cli("analyze", str(corpus.path("oob_load")), "--fast", "--log", str(tmp_path))
    assert found.code in (2, 3)
    assert "is a folder, not a file" in found.err + found.out
