"""``analyze --debugger``: whatever the debugger does, the report arrives in time and says how it fared."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from crashlab.debugger import candidates
from crashlab.errors import MissingTool
from tests.support import corpus, fake_cuda_gdb
from tests.support.command import run_cli

LIMIT = 3.0
SLACK = 15.0
"""For a machine under load; without the limit the sleeping ones would take an hour."""


@pytest.mark.parametrize(
    "behaviour", sorted({*fake_cuda_gdb.BEHAVIOURS, "broken"} - {"hungry", "looks-around"})
)
def test_the_report_arrives_and_is_complete(behaviour: str, tmp_path: Path) -> None:
    broken = behaviour == "broken"
    program = fake_cuda_gdb.install_broken(tmp_path) if broken else fake_cuda_gdb.install(tmp_path, behaviour)
    start = time.monotonic()
    found = run_cli(
        "analyze",
        "--json",
        "--debugger",
        str(program),
        "--debugger-timeout",
        str(LIMIT),
        str(corpus.path("oob_load")),
    )
    assert time.monotonic() - start < LIMIT + SLACK
    assert found.code == 0
    report = json.loads(found.out)
    assert report["verdict"]["kernel"]["mangled"] == "_Z20oob_global_load_callPfS_x"
    assert report["verdict"]["exception"]["code"] == 14
    assert report["readers"]["cuda_gdb"]["status"] in (
        "ok", "aborted", "timed-out", "missing", "refused", "failed",
    )  # fmt: skip
    assert [pid for pid in fake_cuda_gdb.pids(program) if fake_cuda_gdb.is_alive(pid)] == []


@pytest.mark.parametrize("more", [(), ("-q",), ("--json",)])
def test_a_named_debugger_that_is_not_there_is_an_error_before_anything_is_read(
    more: tuple[str, ...], tmp_path: Path
) -> None:
    plain = tmp_path / "cuda-gdb"
    plain.write_text("not executable")
    for path in ("/nonexistent/cuda-gdb", str(plain), str(tmp_path / "none")):
        found = run_cli("analyze", *more, "--debugger", path, str(corpus.path("oob_load")))
        assert (found.code, found.out) == (3, "")
        assert f"--debugger: {path} is no program" in found.err
        assert "leave it out" in found.err


def test_a_folder_that_holds_a_debugger_may_be_named(tmp_path: Path) -> None:
    program = Path(fake_cuda_gdb.install(tmp_path, sorted(fake_cuda_gdb.BEHAVIOURS)[0]))
    candidates.require(str(program.parent))
    with pytest.raises(MissingTool):
        candidates.require("/")


def test_auto_without_any_debugger_says_nothing_about_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr("crashlab.debugger.candidates.toolkit_bins", lambda *_: ())
    report = json.loads(run_cli("analyze", "--json", str(corpus.path("oob_load"))).out)
    assert "cuda_gdb" not in report["readers"]


def test_never_and_fast_start_no_debugger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Path(fake_cuda_gdb.install(tmp_path, "sleeps"))
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    for option in (["--debugger", "never"], ["--fast"]):
        report = json.loads(run_cli("analyze", "--json", *option, str(corpus.path("oob_load"))).out)
        assert "cuda_gdb" not in report["readers"]
