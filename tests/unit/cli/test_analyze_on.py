"""``crashlab analyze FOLDER --on …``: where many dumps are read."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.command import run_cli

DUMPS = sorted((Path(__file__).resolve().parents[2] / "data" / "dumps").glob("*.xz"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path in DUMPS[:20]:
        shutil.copy(path, tmp_path)
    return tmp_path


def test_many_dumps_are_grouped_with_several_processes(folder: Path) -> None:
    done = run_cli("analyze", "--json", "--fast", str(folder))
    assert done.code == 0, done.err
    assert sum(group["crashes"] for group in json.loads(done.out)["groups"]) == 20


def test_one_dump_is_not_sent_to_a_cluster() -> None:
    done = run_cli("analyze", "--on", "ray", str(DUMPS[0]))
    assert (done.code, "folder" in done.err) == (2, True)


def test_without_ray_the_error_names_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    done = run_cli("analyze", "--on", "ray", str(folder))
    assert (done.code, "crashlab[ray]" in done.err) == (3, True)
