"""scripts/install-cuda-gdb without a network: its words, its refusals, and what it leaves alone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "scripts" / "install-cuda-gdb"


def _run(*args: str, path: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    full = {**os.environ, **env}
    full.pop("DEBIAN_MIRROR", None)
    if path is not None:
        full["PATH"] = f"{path}:{os.environ['PATH']}"
    return subprocess.run([str(SCRIPT), *args], capture_output=True, text=True, env=full, timeout=60)


def _tool(folder: Path, name: str, body: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)


def test_it_is_a_clean_posix_script() -> None:
    assert os.access(SCRIPT, os.X_OK)
    assert subprocess.run(["sh", "-n", str(SCRIPT)], check=False).returncode == 0


def test_it_names_no_host() -> None:
    text = SCRIPT.read_text()
    assert "http" not in text
    assert ".org" not in text


def test_help_goes_to_stdout() -> None:
    result = _run("--help")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("Usage: install-cuda-gdb")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), "Usage:"),
        (("--nonsense", "d"), "unknown option --nonsense"),
        (("a", "b"), "more than one folder"),
    ],
)
def test_bad_usage_is_exit_2(tmp_path: Path, args: tuple[str, ...], words: str) -> None:
    result = _run(*(str(tmp_path / a) if not a.startswith("-") else a for a in args))
    assert result.returncode == 2
    assert words in result.stderr


def test_a_suite_that_is_no_name_is_refused(tmp_path: Path) -> None:
    result = _run("--suite", "a b; rm", str(tmp_path / "d"))
    assert (result.returncode, "not a suite name" in result.stderr) == (2, True)
    assert _run("--suite").returncode == 2


def test_a_working_folder_is_left_as_it_is(tmp_path: Path) -> None:
    _tool(tmp_path / "have", "cuda-gdb", "echo 'NVIDIA (R) cuda-gdb 12.4'")
    _tool(tmp_path / "bin", "apt-get", "echo apt was called >&2; exit 9")
    before = sorted(os.listdir(tmp_path / "have"))
    result = _run(str(tmp_path / "have"), path=tmp_path / "bin")
    assert result.returncode == 0
    assert result.stdout == f"{tmp_path / 'have' / 'cuda-gdb'}\n"
    assert "apt was called" not in result.stderr
    assert sorted(os.listdir(tmp_path / "have")) == before


def test_without_a_debian_mirror_it_says_what_to_do(tmp_path: Path) -> None:
    _tool(tmp_path / "bin", "apt-get", "echo 'mirror:/other/ubuntu/|noble|'")
    _tool(tmp_path / "bin", "dpkg-deb", "exit 0")
    result = _run(str(tmp_path / "d"), path=tmp_path / "bin")
    assert result.returncode == 1
    assert "apt is not configured with a Debian mirror" in result.stderr
    assert "--mirror URL" in result.stderr


def test_a_failing_download_is_reported_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "key.gpg").write_text("key")
    body = f"""
case "$*" in
  indextargets*) echo 'mirror:/pool/debian-security/|x-security|'; echo 'mirror:/pool/debian/|x|{tmp_path}/key.gpg' ;;
  *update*) echo "E: cannot resolve"; for a in "$@"; do echo "$a"; done >>{tmp_path}/asked; exit 100 ;;
esac"""
    _tool(tmp_path / "bin", "apt-get", body)
    _tool(tmp_path / "bin", "dpkg-deb", "exit 0")
    (tmp_path / "tmp").mkdir()
    result = _run(
        "--suite", "forky", str(tmp_path / "d"), path=tmp_path / "bin", TMPDIR=str(tmp_path / "tmp")
    )
    assert result.returncode == 1
    assert "E: cannot resolve" in result.stderr
    assert "cannot read the lists of forky" in result.stderr
    assert os.listdir(tmp_path / "tmp") == []
    assert os.listdir(tmp_path / "d") == []
    asked = (tmp_path / "asked").read_text().splitlines()
    assert "Dir::Etc::SourceParts=/dev/null" in asked
    assert "Dir::State::status=/dev/null" in asked


def test_packages_that_hold_something_else_are_refused(tmp_path: Path) -> None:
    (tmp_path / "key.gpg").write_text("key")
    body = f"""
case "$*" in
  indextargets*) echo 'mirror:/pool/debian/|x|{tmp_path}/key.gpg' ;;
  *install*) for a in "$@"; do case $a in Dir::Cache::archives=*) touch "${{a#*=}}/x.deb" ;; esac; done ;;
esac"""
    _tool(tmp_path / "bin", "apt-get", body)
    _tool(tmp_path / "bin", "dpkg-deb", "exit 0")
    result = _run(str(tmp_path / "d"), path=tmp_path / "bin")
    assert result.returncode == 1
    assert "do not hold what was expected" in result.stderr
