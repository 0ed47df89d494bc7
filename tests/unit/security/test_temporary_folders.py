"""Names that others can foresee below /tmp and /dev/shm: a folder or link that waits there is not used."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from crashlab.capture.pump import Recorder
from crashlab.capture.trigger import ask
from crashlab.debugger.room import bare_room
from crashlab.errors import MissingTool
from crashlab.rundir import private
from crashlab.rundir.journal import Journal
from crashlab.rundir.keep import bring_home
from crashlab.rundir.writer import RunWriter


def squat(place: Path, how: str) -> Path:
    """Somebody was here first, in one of several ways."""
    theirs = place.parent / "theirs"
    theirs.mkdir(exist_ok=True)
    if how == "link":
        place.symlink_to(theirs, target_is_directory=True)
    elif how == "writable":
        place.mkdir()
        place.chmod(0o777)
    elif how == "group-writable":
        place.mkdir()
        place.chmod(0o770)
    else:
        place.write_text("a file")
    return theirs


HOW = ("link", "writable", "group-writable", "file")


@pytest.mark.parametrize("how", HOW)
def test_a_folder_that_was_there_is_refused_unless_it_is_ours(how: str, tmp_path: Path) -> None:
    place = tmp_path / "crashlab-runs"
    theirs = squat(place, how)
    assert not private.is_ours(str(place))
    with pytest.raises(OSError, match="not a folder of this user alone"):
        private.make(str(place))
    assert not list(theirs.iterdir())


def test_our_own_folder_is_used_again_and_is_for_us_alone(tmp_path: Path) -> None:
    place = tmp_path / "ours"
    private.make(str(place))
    private.make(str(place))
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert private.is_ours(str(place))
    assert not private.is_ours(str(tmp_path / "none"))


@pytest.mark.parametrize("how", HOW)
def test_a_run_that_cannot_be_written_where_it_should_avoids_a_squatted_place(
    how: str, tmp_path: Path
) -> None:
    first, second = tmp_path / "tmp", tmp_path / "shm"
    first.mkdir()
    second.mkdir()
    theirs = squat(first / f"crashlab-runs-{os.getuid()}", how)
    blocked = tmp_path / "file"
    blocked.write_text("")
    writer = RunWriter.create(str(blocked / "run"), ["x"], fallbacks=(str(first), str(second)))
    assert Path(writer.path).is_relative_to(second)
    assert not list(theirs.iterdir())
    with pytest.raises(MissingTool):
        RunWriter.create(str(blocked / "run"), ["x"], fallbacks=(str(first),))


@pytest.mark.parametrize("how", HOW)
def test_in_a_folder_of_everybody_the_run_avoids_a_squatted_name(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    everybodys, fallback = tmp_path / "everybodys", tmp_path / "fallback"
    everybodys.mkdir()
    everybodys.chmod(0o1777)
    fallback.mkdir()
    theirs = squat(everybodys / "crashlab-runs", how)
    monkeypatch.chdir(everybodys)
    writer = RunWriter.create(None, ["x"], fallbacks=(str(fallback),))
    assert Path(writer.path).is_relative_to(fallback)
    assert "everybody may write" in (writer.why_moved or "")
    assert not list(theirs.iterdir())


def test_in_a_folder_of_everybody_our_own_runs_stay_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    everybodys = tmp_path / "everybodys"
    everybodys.mkdir()
    everybodys.chmod(0o1777)
    monkeypatch.chdir(everybodys)
    before = os.umask(0o022)
    try:
        paths = [Path(RunWriter.create(None, ["x"], fallbacks=()).path).parent for _ in range(2)]
    finally:
        os.umask(before)
    assert paths == [everybodys / "crashlab-runs"] * 2


def test_in_a_folder_of_ones_own_a_link_to_a_larger_disk_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "large").mkdir()
    (tmp_path / "here").mkdir(mode=0o755)
    (tmp_path / "here" / "crashlab-runs").symlink_to(tmp_path / "large", target_is_directory=True)
    monkeypatch.chdir(tmp_path / "here")
    writer = RunWriter.create(None, ["x"], fallbacks=())
    assert writer.moved_from is None
    assert list((tmp_path / "large").iterdir())


def config(tmp_path: Path) -> dict[str, Any]:
    return {
        "folder": "/proc/nowhere",
        "overflow": str(tmp_path / "over"),
        "attempt": 1,
        "segment": 99,
        "cap": 999,
    }


@pytest.mark.parametrize("how", HOW)
def test_output_does_not_overflow_into_a_folder_of_somebody_else(how: str, tmp_path: Path) -> None:
    theirs = squat(tmp_path / "over", how)
    recorder = Recorder("stdout", config(tmp_path))
    recorder.write(b"what the program said")
    assert recorder.lost == len(b"what the program said")
    assert not list(theirs.iterdir())


def test_output_does_not_follow_a_link_to_another_file(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "over").mkdir(mode=0o700)
    (tmp_path / "over" / "001.stdout.log").symlink_to(victim)
    Recorder("stdout", config(tmp_path)).write(b"hello")
    assert victim.read_text() == "mine"


def test_a_record_does_not_follow_a_link_to_another_file(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "events.jsonl").symlink_to(victim)
    journal = Journal(str(tmp_path / "events.jsonl"))
    assert not journal.append({"a": 1})
    assert journal.error
    assert victim.read_text() == "mine"


def test_a_report_does_not_follow_a_link_to_another_file(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    writer = RunWriter.create(str(tmp_path / "run"), ["x"])
    for name in ("report.txt", "report.txt.tmp"):
        (tmp_path / "run" / name).symlink_to(victim)
    writer.write_file("report.txt", "the report")
    writer.finish()
    assert victim.read_text() == "mine"


def test_overflow_is_not_brought_home_from_a_folder_of_somebody_else(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    over = tmp_path / "over"
    over.mkdir()
    over.chmod(0o777)
    (over / "001.stdout.+3.log").symlink_to(victim)
    writer = RunWriter.create(str(tmp_path / "run"), ["x"])
    bring_home(writer.path, str(over))
    assert not list((tmp_path / "run" / "output").iterdir())
    assert victim.read_text() == "mine"


@pytest.mark.parametrize("how", ["file", "link to a file", "link to a pipe"])
def test_a_request_for_a_dump_overwrites_no_file(how: str, tmp_path: Path) -> None:
    """CUDA_COREDUMP_PIPE may be the user's own and lie in /tmp, where others can put something first."""
    victim, place = tmp_path / "victim", tmp_path / "pipe.1"
    victim.write_text("mine")
    if how == "file":
        place = victim
    elif how == "link to a file":
        place.symlink_to(victim)
    else:
        os.mkfifo(tmp_path / "other")
        place.symlink_to(tmp_path / "other")
    asked = ask(str(place), 1, 0.5)
    assert not asked.ok
    assert victim.read_text() == "mine"


def test_a_tools_room_is_for_us_alone() -> None:
    with bare_room() as room:
        assert stat.S_IMODE(os.stat(room.root).st_mode) == 0o700
    assert not os.path.exists(room.root)
