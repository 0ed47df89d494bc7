"""Broken catalogue entries of the user's own: named at once, and never the price of a report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crashlab.capture.doctor import known
from crashlab.capture.doctor.place import Place
from crashlab.signatures import catalogue
from tests.support import corpus
from tests.support.command import run_cli

BROKEN = pytest.mark.parametrize("content", ["x = [", "", 'id = "X-Y"\n'], ids=["toml", "empty", "half"])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "bad"
    place.mkdir()
    monkeypatch.setenv(catalogue.VARIABLE, str(place))
    return place


@BROKEN
@pytest.mark.parametrize("more", [(), ("-q",)], ids=["plain", "click"])
def test_a_broken_entry_is_a_warning_and_the_dump_is_still_read(
    folder: Path, content: str, more: tuple[str, ...]
) -> None:
    (folder / "mine.toml").write_text(content)
    found = run_cli("analyze", "--fast", *more, str(corpus.path("oob_load")))
    assert found.code == 0
    assert "Warp Illegal Address" in found.out
    assert f"{folder / 'mine.toml'} is left out: " in found.err
    assert "signatures check" in found.err


@BROKEN
def test_the_report_names_the_entry_that_was_not_held_against_the_crash(folder: Path, content: str) -> None:
    (folder / "mine.toml").write_text(content)
    report = json.loads(run_cli("analyze", "--fast", "--json", str(corpus.path("oob_load"))).out)
    assert any("bad/mine.toml cannot be used: " in note for note in report["provenance"])


def test_the_check_stays_strict_and_the_list_goes_on(folder: Path) -> None:
    (folder / "mine.toml").write_text("x = [")
    assert run_cli("signatures", "check").code == 3
    listed = run_cli("signatures", "list", "--find", "flashinfer")
    assert listed.code == 0
    assert "mine.toml is left out" in listed.err


def test_match_names_an_entry_under_a_bundled_id_and_shows_the_bundled_one(folder: Path) -> None:
    from tests.unit.signatures.test_catalogue import ENTRY

    (folder / "mine.toml").write_text(ENTRY.format(id="CUDNN-SM120-FORT-STS"))
    found = run_cli("signatures", "match", str(corpus.path("seed_sm120")))
    assert "CUDNN-SM120-FORT-STS is taken" in found.err
    assert "mine" not in found.out
    checked = run_cli("signatures", "check")
    assert checked.code == 3
    assert "CUDNN-SM120-FORT-STS is taken" in checked.out


def test_the_doctor_reads_the_entries_before_the_crash(folder: Path) -> None:
    from tests.unit.signatures.test_catalogue import ENTRY

    place = Place({catalogue.VARIABLE: str(folder)}, str(folder))
    (folder / "good.toml").write_text(ENTRY.format(id="MINE-ONE"))
    (check,) = known.entries(place)
    assert check.status == "ok"
    (folder / "mine.toml").write_text("x = [")
    (check,) = known.entries(place)
    assert check.status == "warn"
    assert "mine.toml: " in check.found
    assert list(known.entries(Place({}, str(folder)))) == []


def test_only_the_first_of_many_are_named(folder: Path) -> None:
    for number in range(8):
        (folder / f"{number}.toml").write_text("")
    found = run_cli("signatures", "list", "--find", "flashinfer")
    assert "3 more catalogue entries" in found.err
    assert len(found.err.splitlines()) <= 8
