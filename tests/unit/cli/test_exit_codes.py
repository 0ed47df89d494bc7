"""Exit codes where several dumps are read and not all of them can be."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from crashlab import facts
from crashlab.cli import exitcode
from tests.support import corpus
from tests.support.command import run_cli

BROKEN = b"\x7fELF" + b"x" * 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two dumps, one of which is no dump at all."""
    shutil.copy(corpus.path("oob_load"), tmp_path / "a.core.xz")
    (tmp_path / "b.core").write_bytes(BROKEN)
    return tmp_path


def test_one_readable_dump_decides_and_the_report_names_the_other(folder: Path) -> None:
    dumps = [str(folder / name) for name in ("a.core.xz", "b.core", "missing.core")]
    text = run_cli("analyze", "--fast", *dumps)
    assert text.code == 0
    assert [line.split()[1] for line in text.out.splitlines() if line.startswith("unreadable ")] == [
        "b.core:",
        "missing.core:",
    ]
    assert run_cli("analyze", "--fast", "--exit-code", *dumps).code == 10
    cases = json.loads(run_cli("analyze", "--fast", "--json", *dumps).out)["cases"]
    assert [case["role"] for case in cases] == ["origin", "unreadable", "unreadable"]
    quiet = run_cli("analyze", "--fast", "-q", *dumps)
    assert (quiet.code, quiet.err.count("Unreadable")) == (0, 2)


def test_when_no_dump_can_be_read_the_code_is_3(folder: Path) -> None:
    dumps = [str(folder / name) for name in ("b.core", "missing.core")]
    for options in ((), ("--exit-code",), ("--json",), ("-q",)):
        assert run_cli("analyze", "--fast", *options, *dumps).code == 3


def test_no_fault_beside_an_unreadable_dump_is_not_nothing_found() -> None:
    clean = facts.Verdict("no-fault", "Nothing.")
    case = facts.Case("a", "origin", "no-fault", "Nothing.")
    tool = facts.Tool("crashlab", "0")
    report = facts.Report("crashlab.report/1", tool, "2026-01-01T00:00:00Z", (), clean, cases=(case,))
    assert exitcode.of_report(report) == 0
    beside = facts.Case("b", "unreadable", "unreadable", "Unreadable.")
    assert exitcode.of_report(report._replace(cases=(case, beside))) == exitcode.INCONCLUSIVE


def test_a_folder_of_nothing_but_broken_dumps_exits_with_3(folder: Path) -> None:
    assert run_cli("analyze", "--fast", str(folder)).code == 0
    assert run_cli("analyze", "--fast", "--exit-code", str(folder)).code == 10
    (folder / "a.core.xz").unlink()
    done = run_cli("analyze", "--fast", str(folder))
    assert (done.code, "1 unreadable" in done.out) == (3, True)


@pytest.mark.parametrize(
    ("kinds", "unreadable", "code"),
    [
        ((), 0, 0),
        ((), 2, 3),
        (("no-fault",), 0, 0),
        (("no-fault",), 1, 15),
        (("hang", "no-fault"), 1, 12),
        (("hang", "trap"), 0, 10),
        (("something new",), 0, 15),
    ],
)
def test_of_a_folder_a_fault_counts_before_a_hang_before_anything_else(
    kinds: tuple[str, ...], unreadable: int, code: int
) -> None:
    assert exitcode.of_folder(kinds, unreadable) == code


def test_a_folder_of_hangs_is_a_hang(tmp_path: Path) -> None:
    shutil.copy(corpus.path("hang"), tmp_path / "a.core.xz")
    assert run_cli("analyze", "--fast", "--exit-code", str(tmp_path)).code == 12
