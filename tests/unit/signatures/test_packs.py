"""Looking for packages that bring entries costs nothing where there is none, and overlooks none."""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path

import pytest

from crashlab.signatures import catalogue
from crashlab.signatures.packs import may_exist
from tests.unit.signatures.test_catalogue import ENTRY


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of installed packages, the only one besides the standard library."""
    folder = tmp_path / "site"
    folder.mkdir()
    library = [os.path.dirname(os.__file__), os.path.join(os.path.dirname(os.__file__), "lib-dynload")]
    monkeypatch.setattr(sys, "path", [str(folder), str(tmp_path / "missing"), *library])
    return folder


def _install(site: Path, metadata: str, points: str | None) -> None:
    (site / metadata).mkdir()
    (site / metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    if points is not None:
        (site / metadata / "entry_points.txt").write_text(points)


def test_no_package_has_none(site: Path) -> None:
    assert not may_exist("crashlab.signatures")


@pytest.mark.parametrize("points", [None, "[console_scripts]\ncrashlab.signatures = mine:main\n"])
def test_a_package_without_the_group_is_none(site: Path, points: str | None) -> None:
    _install(site, "mine-1.dist-info", points)
    assert not may_exist("crashlab.signatures")


@pytest.mark.parametrize("metadata", ["mine-1.dist-info", "mine.egg-info", "EGG-INFO"])
def test_a_package_with_the_group_is_seen(site: Path, metadata: str) -> None:
    _install(site, metadata, "[other]\na = b\n\n[crashlab.signatures]\nmine = mine:folder\n")
    assert may_exist("crashlab.signatures")


def test_an_archive_or_another_finder_means_asking(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Finder:
        @classmethod
        def find_spec(cls, *_: object) -> None:
            return None

        @classmethod
        def find_distributions(cls, *_: object) -> list[object]:
            return []

    with monkeypatch.context() as patch:
        patch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
        assert may_exist("crashlab.signatures")
    with zipfile.ZipFile(site / "mine.zip", "w") as archive:
        archive.writestr("mine.py", "")
    monkeypatch.setattr(sys, "path", [str(site / "mine.zip")])
    assert may_exist("crashlab.signatures")


def test_the_entries_of_an_installed_package_are_loaded(site: Path) -> None:
    _install(site, "mine-1.dist-info", "[crashlab.signatures]\nmine = minepack:folder\n")
    (site / "minepack.py").write_text(f"def folder():\n    return {str(site / 'entries')!r}\n")
    (site / "entries").mkdir()
    (site / "entries" / "a.toml").write_text(ENTRY.format(id="MINE-TWO"))
    assert "MINE-TWO" in {entry.id for entry in catalogue.load()}
    sys.modules.pop("minepack", None)
