"""A folder of dumps: grouped by what failed, with what the places speak for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from crashlab.errors import UnreadableInput
from crashlab.report.groups import analyze_folder
from crashlab.report.options import AnalyzeOptions
from tests.support import corpus
from tests.support.command import run_cli
from tests.support.core_writer import CoreWriter

FAST = AnalyzeOptions(fast=True)


def _folder(tmp_path: Path, *names: str) -> Path:
    for number, name in enumerate(names):
        shutil.copy(
            corpus.path(name), tmp_path / f"node{number % 2}.{100 + number}.17000000{number:02}.nvcudmp"
        )
    return tmp_path


def test_the_same_bug_in_two_builds_is_one_group(tmp_path: Path) -> None:
    found = analyze_folder(
        str(_folder(tmp_path, "oob_store", "oob_store_nolineinfo", "graph", "misaligned")), FAST
    )
    assert [(g.crashes, g.kernel) for g in found.groups] == [
        (3, "oob_global_store(float*, long long, long long)"),
        (1, "misaligned_global(char*)"),
    ]
    assert len(found.groups[0].fine_keys) == 2
    assert found.groups[0].hosts == ("node0", "node1")


def test_what_is_no_dump_is_skipped_and_a_cut_one_is_listed(tmp_path: Path) -> None:
    _folder(tmp_path, "oob_load", "cut_short")
    (tmp_path / "server.log").write_text("hello\n")
    found = analyze_folder(str(tmp_path), FAST)
    assert found.skipped == 1
    assert len(found.unreadable) == 1
    assert sum(g.crashes for g in found.groups) == 1


def test_files_named_like_dumps_that_are_empty_or_none_are_listed_as_unreadable(tmp_path: Path) -> None:
    for name in ("host.12.3.nvcudmp", "host.12.4.nvcudmp"):
        (tmp_path / name).touch()
    (tmp_path / "text.core").write_text("no dump at all")
    assert run_cli("analyze", str(tmp_path)).code == 3
    found = analyze_folder(str(_folder(tmp_path, "oob_load")), FAST)
    assert [line.split(":")[0] for line in found.unreadable] == [
        "host.12.3.nvcudmp", "host.12.4.nvcudmp", "text.core",
    ]  # fmt: skip
    assert (found.skipped, found.copies) == (0, ())
    quiet = run_cli("analyze", "--fast", "-q", str(tmp_path))
    assert "host.12.3.nvcudmp: Unreadable: the file is empty." in quiet.err
    assert quiet.code == 0
    assert run_cli("analyze", "--fast", "--exit-code", str(tmp_path)).code == 10


def _sm_record(path: Path, sm: int, pc: int) -> None:
    w = CoreWriter()
    devices = w.table("device", "devtbl")
    devices.add(numSMs=132, smMajor=9)
    sms = w.table("sm", "smtbl.dev0", devices.index, 0)
    sms.add(smId=sm, exception=14, errorPCValid=1, errorPC=pc)
    w.write(path)


def test_small_launches_that_always_start_on_one_sm_do_not_accuse_the_hardware(tmp_path: Path) -> None:
    found = analyze_folder(
        str(_folder(tmp_path, "oob_load", "misaligned", "misaligned_shared", "deep")), FAST
    )
    assert {sm for g in found.groups for sm in g.sms} == {"0:124"}
    assert found.hardware_suspect is None


def test_crashes_without_any_symbol_still_group_by_the_low_bits_of_the_pc(tmp_path: Path) -> None:
    for number, pc in enumerate((0x7F0000001230, 0x7F1234561230, 0x7F0000009990)):
        _sm_record(tmp_path / f"{number}.core", number, pc)
    assert [g.crashes for g in analyze_folder(str(tmp_path), FAST).groups] == [2, 1]


def test_an_empty_folder_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInput, match="no GPU core dump"):
        analyze_folder(str(tmp_path), FAST)


def test_the_command_prints_text_and_json(tmp_path: Path) -> None:
    folder = str(_folder(tmp_path, "oob_load", "oob_load_nolineinfo", "hang"))
    text = run_cli("analyze", "--fast", folder)
    assert text.code == 0
    assert "3 dumps in 2 groups" in text.out
    value = json.loads(run_cli("analyze", "--fast", "--json", folder).out)
    assert value["schema"] == "crashlab.groups/1"
    assert value["groups"][0]["crashes"] == 2
    assert run_cli("analyze", "--fast", "--exit-code", folder).code == 10
