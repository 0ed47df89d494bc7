"""Many dumps in several processes: the same reports in the same order, and one that kills its reader."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from crashlab import facts
from crashlab.report import groupwork
from crashlab.report.build import analyze_dump
from crashlab.report.options import AnalyzeOptions

DUMPS = sorted(str(path) for path in (Path(__file__).resolve().parents[2] / "data" / "dumps").glob("*.xz"))
FAST = AnalyzeOptions(fast=True)


def _told(reports: Sequence[facts.Report]) -> list[tuple[str, str, str | None]]:
    return [
        (r.inputs[0].path, r.verdict.headline, r.signature_key.coarse if r.signature_key else None)
        for r in reports
    ]


def test_several_processes_give_the_same_reports_in_the_same_order(tmp_path: Path) -> None:
    (tmp_path / "cut.core").write_bytes(b"\x7fELF")
    paths = [*DUMPS[:18], str(tmp_path / "cut.core")]
    assert _told(list(groupwork.read_here(paths, FAST, 2))) == _told(
        list(groupwork.read_here(paths, FAST, 1))
    )


def _deadly(paths: Sequence[str], options: AnalyzeOptions) -> list[facts.Report]:
    if any(path.endswith("deadly.core") for path in paths):
        os._exit(9)
    return [analyze_dump(path, options) for path in paths]


def test_a_dump_that_kills_its_process_is_unreadable_and_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groupwork, "_read", _deadly)
    deadly = tmp_path / "deadly.core"
    deadly.write_bytes(b"\x7fELF")
    paths = [*DUMPS[:9], str(deadly), *DUMPS[9:20]]
    reports = list(groupwork.read_here(paths, FAST, 2))
    assert [r.inputs[0].path for r in reports] == [os.path.basename(path) for path in paths]
    kinds = {r.inputs[0].path: r.verdict for r in reports}
    assert kinds["deadly.core"].kind == "unreadable"
    assert "ended the process" in kinds["deadly.core"].headline
    assert sum(verdict.kind != "unreadable" for verdict in kinds.values()) >= 17


class _Ray:
    """As much of ray as a grouping uses; every second task is lost."""

    class exceptions:  # noqa: N801 (ray's own name)
        class RayError(Exception):
            pass

        class WorkerCrashedError(RayError):
            pass

    def __init__(self) -> None:
        self.made = 0

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def remote(self, **_: object):  # type: ignore[no-untyped-def]
        def wrap(function):  # type: ignore[no-untyped-def]
            class Task:
                @staticmethod
                def remote(*arguments: object) -> object:
                    return lambda: function(*arguments)

            return Task

        return wrap

    def get(self, reference):  # type: ignore[no-untyped-def]
        self.made += 1
        if self.made % 4 == 2:
            raise self.exceptions.RayError
        if self.made % 4 == 0:
            raise self.exceptions.WorkerCrashedError
        return reference()


def test_a_cluster_gives_the_same_reports_and_what_it_loses_is_read_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crashlab.sweep.raycluster.connect", lambda address: _Ray())
    paths = DUMPS[:6]
    reports = list(groupwork.read_on_ray([*paths, str(tmp_path / "gone.core")], FAST))
    expected = _told([analyze_dump(path, FAST) for path in paths])
    told = _told(reports)
    assert [told[at] for at in (0, 1, 2, 4, 5)] == [expected[at] for at in (0, 1, 2, 4, 5)]
    assert "ended the process" in told[3][1]
    assert reports[6].verdict.kind == "unreadable"
