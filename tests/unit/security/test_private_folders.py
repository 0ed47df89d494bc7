"""What a crash leaves may hold prompts, weights and environments: its folder is for its owner alone."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from crashlab.rundir.private import make_new
from crashlab.rundir.writer import RunWriter
from crashlab.sweep.plan import read_plan
from crashlab.sweep.runner import SweepFolder
from tests.support.command import run_cli


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode) & 0o777


@pytest.fixture(params=[0o022, 0o000, 0o077, 0o027], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run_directory_is_its_owners_whatever_the_umask(place: Path, umask: int) -> None:
    named = RunWriter.create("out/deep/run", ["x"])
    assert mode(named.path) == 0o700
    assert mode(place / "out" / "deep") == 0o777 & ~umask  # folders around it are nobody's secret
    for _ in range(2):
        assert mode(RunWriter.create(None, ["x"]).path) == 0o700


def test_where_the_wanted_folder_cannot_be_made_the_other_one_is_private_too(place: Path, umask: int) -> None:
    (place / "file").write_text("")
    moved = RunWriter.create("file/run", ["x"], fallbacks=[str(place)])
    assert moved.moved_from is not None
    assert mode(moved.path) == 0o700


@pytest.mark.parametrize("chosen", [0o750, 0o755, 0o777, 0o2770])
def test_an_empty_folder_keeps_the_mode_that_somebody_chose(place: Path, umask: int, chosen: int) -> None:
    (place / "run").mkdir()
    (place / "run").chmod(chosen)
    writer = RunWriter.create("run", ["x"])
    assert mode(writer.path) == chosen & 0o777
    assert mode(writer.file("cores")) == 0o777 & ~umask  # a server of another user may have to write there
    writer.start({"argv": ["x"]})
    writer.finish()
    assert writer.problems == []


def test_the_folder_of_a_sweep_is_private_and_goes_on(place: Path, umask: int) -> None:
    plan = read_plan("[levers]\nmoe-backend = ['marlin']\n", "p.toml", command=["server"])
    for _ in range(2):
        SweepFolder.open("s/moe", plan, str(place)).close()
        assert mode("s/moe") == 0o700
    (place / "shared").mkdir(mode=0o777)
    (place / "shared").chmod(0o750)
    SweepFolder.open("shared", plan, str(place)).close()
    assert mode("shared") == 0o750


@pytest.mark.parametrize(
    "words", [("run", "--", "true"), ("quality", "--a-url", "http://127.0.0.1:9", "--ready-within", "0s")]
)
def test_commands_record_into_a_private_folder(place: Path, words: tuple[str, ...]) -> None:
    done = run_cli(words[0], "--out", "here", *words[1:])
    assert done.code in (0, 14), done.err
    assert mode("here") == 0o700
    assert run_cli("analyze", "--fast", "here").code == 0


def test_who_made_the_folder_is_told(place: Path) -> None:
    assert make_new("a/b") is True
    assert make_new("a/b") is False
    (place / "file").write_text("")
    assert make_new("file") is False
    with pytest.raises(OSError, match="file"):
        make_new("file/below")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_another_user_cannot_look_into_it_but_into_a_folder_that_was_opened_for_him() -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o711)
        closed = RunWriter.create(str(place / "closed"), ["x"])
        (place / "open").mkdir()
        (place / "open").chmod(0o755)
        opened = RunWriter.create(str(place / "open"), ["x"])
        if not _listed_by_nobody(opened.path):
            pytest.skip("the temporary folder itself is closed to others")
        assert not _listed_by_nobody(closed.path)


def _listed_by_nobody(path: str) -> bool:
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        try:
            os.listdir(path)
        except PermissionError:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
