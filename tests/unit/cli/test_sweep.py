"""``crashlab sweep`` on the command line: modes, errors with their next step, exit codes."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab.cli.sweep import sweep
from crashlab.sweep import journal
from tests.support.command import run_cli
from tests.support.demosweep import PLAN, demo_command
from tests.support.fakesweep import FakeServers

DEMO = ["--", *demo_command()]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("VLLM_")]:
        monkeypatch.delenv(name)
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> FakeServers:
    """Runs without servers."""
    made = FakeServers()
    monkeypatch.setattr("crashlab.sweep.backend.Local.__init__", _with(made))
    return made


def _with(servers: FakeServers):  # type: ignore[no-untyped-def]
    from crashlab.sweep.backend import Local

    real = Local.__init__

    def begin(self: Local, slots: int = 1) -> None:
        real(self, slots, run=servers.run)

    return begin


def test_the_catalogue_is_listed_as_text_and_as_json() -> None:
    text = run_cli("sweep", "--list-levers")
    assert text.code == 0
    assert "cudagraph-mode" in text.out
    rows = json.loads(run_cli("sweep", "--list-levers", "--json").out)
    assert {"id", "set", "confounds", "shown_by"} <= set(rows[0])


def test_a_dry_run_asks_the_server_and_runs_nothing(place: Path) -> None:
    done = run_cli("sweep", "--dry-run", "plan.toml", *DEMO)
    assert done.code == 0, done.err
    assert "its help was read" in done.out
    assert "--moe-backend marlin" in done.out
    assert not (place / "crashlab-runs").exists()


@pytest.mark.parametrize(
    "before",
    [["plan.toml", "--dry-run"], ["--dry-run", "plan.toml"], ["--out", "x", "plan.toml", "-q", "--dry-run"]],
)
def test_options_stand_before_or_after_the_plan(place: Path, before: list[str]) -> None:
    done = run_cli("sweep", *before, *DEMO)
    assert done.code == 0, done.err
    assert "cudagraph-mode" in done.out


def _parsed(*words: str) -> click.Context:
    return sweep.make_context("sweep", list(words))


def test_what_follows_the_dashes_is_the_servers_even_if_it_looks_like_an_option() -> None:
    context = _parsed("plan.toml", "--slurm", "--", "serve", "--dry-run", "--out", "x", "--", "-q", "--help")
    assert context.meta["crashlab.sweep.command"] == (
        "serve",
        "--dry-run",
        "--out",
        "x",
        "--",
        "-q",
        "--help",
    )
    assert context.params["plans"] == ("plan.toml",)
    assert context.params["slurm"] is True
    assert (context.params["dry_run"], context.params["out"], context.params["quiet"]) == (False, None, False)


def test_a_servers_option_without_the_dashes_says_where_its_command_stands(place: Path) -> None:
    done = run_cli("sweep", "plan.toml", "vllm", "serve", "--port", "8000")
    assert done.code == 2
    assert "The server's command comes after '--'." in done.err


HOW_TO = Path(__file__).parents[3] / "docs" / "how-to" / "sweep.md"


def _examples() -> list[str]:
    shown = (sweep.help or "").split("Examples:")[1].split("Exit code:")[0]
    lines = [line.strip().removeprefix("crashlab ") for line in shown.splitlines() if line.strip()]
    lines = [re.split(r"\s{3,}", line)[0] for line in lines]
    page = re.sub(r"\n(?=\S+==)", " ", HOW_TO.read_text())  # a command that goes on in the next line
    written = [
        found.group(1) for found in re.finditer(r"(?:`|^)crashlab (sweep [^`\n]*)", page, re.MULTILINE)
    ]
    return lines + written


@pytest.mark.parametrize("example", _examples())
def test_every_documented_example_is_understood_with_a_dry_run_added(example: str) -> None:
    words = shlex.split(example.partition(" > ")[0])[1:]
    at = words.index("--") if "--" in words else len(words)
    context = _parsed(*words[:at], "--dry-run", *words[at:])
    assert context.params["dry_run"] is True
    assert len(context.params["plans"]) == (0 if "--list-levers" in words else 1)
    assert context.meta["crashlab.sweep.command"] == tuple(words[at + 1 :])


def test_there_are_examples_of_the_help_and_of_the_how_to() -> None:
    assert len(_examples()) >= 14


def test_a_dry_run_keeps_to_the_screen_but_for_commands(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    lines = run_cli("sweep", "plan.toml", "--dry-run", *DEMO).out.splitlines()
    assert max(len(line) for line in lines if "crashlab.demo" not in line) <= 70
    assert all("--port {port}" in line for line in lines if "crashlab.demo" in line)


def test_a_lever_that_the_server_does_not_have_is_a_usage_error(place: Path) -> None:
    (place / "plan.toml").write_text("[levers]\ntensor-parallel = [2]\n")
    done = run_cli("sweep", "--dry-run", "plan.toml", *DEMO)
    assert done.code == 2
    assert "does not know the lever 'tensor-parallel'" in done.err
    assert "[[lever]]" in done.err


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        ("[levers]\ncuda-graph-mode = ['NONE']\n", "Did you mean cudagraph-mode"),
        ("[levers\n", "no TOML"),
        ("[levers]\nmoe-backend = ['a']\nbudget = 1\n", "No lever is called 'budget'"),
        ("\x00", "no TOML"),
    ],
)
def test_a_broken_plan_is_a_usage_error_with_a_next_step(place: Path, plan: str, says: str) -> None:
    (place / "plan.toml").write_text(plan)
    done = run_cli("sweep", "plan.toml", *DEMO)
    assert done.code == 2
    assert says in done.err
    assert "internal" not in done.err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ([], 2, "Which plan?"),
        (["nowhere.toml", *DEMO], 3, "nowhere.toml"),
        (["."], 2, "no sweep's folder"),
        (["plan.toml", "stray"], 2, "comes after the plan"),
        (["plan.toml"], 2, "nothing is to be run"),
        (["--prepare", "'", "plan.toml", *DEMO], 2, "--prepare cannot be read"),
        (["--dry-run", "--slurm", "plan.toml", *DEMO], 2, "another thing"),
        (["--json", "--format", "md", "plan.toml", *DEMO], 2, "contradict"),
        (["plan.toml", "--", "/nowhere/server"], 2, "cannot be started"),
        (["--report-only", "plan.toml", *DEMO], 3, "holds no sweep"),
    ],
)
def test_what_makes_no_sense_is_said(place: Path, arguments: list[str], code: int, says: str) -> None:
    done = run_cli("sweep", *arguments)
    assert (done.code, says in done.err) == (code, True), done.err


def test_a_script_for_slurm_is_printed(place: Path) -> None:
    done = run_cli("sweep", "--slurm", "--out", "here", "plan.toml", *DEMO)
    assert done.code == 0
    assert done.out.startswith("#!/bin/bash\n#SBATCH")
    assert "--out here plan.toml --" in done.out


def test_a_sweep_ends_with_a_table_a_folder_and_exit_code_0(place: Path, servers: FakeServers) -> None:
    done = run_cli("sweep", "--out", "s", "plan.toml", *DEMO)
    assert done.code == 0, done.err
    assert "cudagraph-mode unset and moe-backend unset together" in " ".join(done.out.split())
    assert "not_applied" in done.out
    for name in ("report.json", "report.txt", "report.html", "plan.toml", "journal.jsonl"):
        assert (place / "s" / name).stat().st_size > 100
    made = len(servers.made)
    again = run_cli("sweep", "--json", "s")
    assert again.code == 0
    assert len(servers.made) == made
    assert json.loads(again.out) == json.loads((place / "s" / "report.json").read_text())


def test_the_result_can_be_shown_in_every_form_without_running(place: Path, servers: FakeServers) -> None:
    run_cli("sweep", "-q", "--out", "s", "plan.toml", *DEMO)
    made = len(servers.made)
    for shape in ("text", "md", "html", "json", "junit"):
        done = run_cli("sweep", "--report-only", "--format", shape, "-o", f"out.{shape}", "s")
        assert done.code == 0, done.err
        assert "cudagraph-mode" in (place / f"out.{shape}").read_text()
    assert len(servers.made) == made
    assert run_cli("sweep", "--report-only", "-o", "/nowhere/x", "s").code == 2


def test_a_files_name_chooses_the_format_unless_one_is_asked_for(place: Path, servers: FakeServers) -> None:
    run_cli("sweep", "-q", "--out", "s", "plan.toml", *DEMO)
    for name, begins in (("x.html", "<!doctype html>"), ("x.json", "{"), ("x.md", "## "), ("x.xml", "<?xml")):
        done = run_cli("sweep", "--report-only", "-o", name, "s")
        assert (done.code, done.out) == (0, "")
        assert f"written to {place / name}" in done.err
        assert (place / name).read_text().startswith(begins), name
    run_cli("sweep", "--report-only", "--json", "-o", "x.html", "s")
    assert json.loads((place / "x.html").read_text())
    run_cli("sweep", "--report-only", "--format", "md", "-o", "x.html", "s")
    assert (place / "x.html").read_text().startswith("## ")


def test_a_name_whose_format_nobody_writes_is_refused_before_the_first_run(
    place: Path, servers: FakeServers
) -> None:
    done = run_cli("sweep", "-q", "--out", "s", "-o", "x.pdf", "plan.toml", *DEMO)
    assert (done.code, "Nothing here writes .pdf." in done.err) == (2, True), done.err
    assert not servers.made


def test_a_result_that_could_not_be_written_is_refused_before_the_first_run(
    place: Path, servers: FakeServers
) -> None:
    for target in ("/nowhere/x", "."):
        done = run_cli("sweep", "-q", "--out", "s", "-o", target, "plan.toml", *DEMO)
        assert (done.code, f"Cannot write {target}" in done.err) == (2, True), done.err
    assert not servers.made


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--list-levers", "plan.toml"], 2, "'plan.toml' would not be read"),
        (["--list-levers", "--", "serve"], 2, "'serve' would not be read"),
        (["--list-levers", "--format", "md"], 2, "the catalogue is text or JSON"),
        (["--list-levers", "--out", "x"], 0, "--out changes nothing"),
        (["--list-levers", "-o", "x.json"], 0, "--output changes nothing"),
        (["plan.toml", "--slurm", "--json", *DEMO], 0, "--json changes nothing"),
        (["plan.toml", "--dry-run", "-o", "x", *DEMO], 0, "--output changes nothing"),
        (["plan.toml", "--slurm", "--on", "ray", *DEMO], 2, "two places"),
    ],
)
def test_options_that_contradict_or_change_nothing_are_named(
    place: Path, arguments: list[str], code: int, says: str
) -> None:
    done = run_cli("sweep", *arguments)
    assert (done.code, says in done.err) == (code, True), done.err


def test_the_text_keeps_to_the_screen_and_a_file_to_the_page(
    place: Path, servers: FakeServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_cli("sweep", "-q", "--out", "s", "plan.toml", *DEMO)
    monkeypatch.setenv("COLUMNS", "70")
    done = run_cli("sweep", "--report-only", "-o", "out.txt", "s")
    shown = run_cli("sweep", "--report-only", "s").out.splitlines()
    assert max(len(line) for line in shown if not line.startswith("  ")) <= 70
    assert max(len(line) for line in (place / "out.txt").read_text().splitlines()) > 70
    assert done.out == ""


def test_lines_of_the_journal_that_cannot_be_read_are_counted(place: Path, servers: FakeServers) -> None:
    run_cli("sweep", "-q", "--out", "s", "plan.toml", *DEMO)
    (place / "s" / "journal.jsonl").write_text("garbage\n[1]\n\n{torn")
    for shape in ("text", "md", "html", "json", "junit"):
        done = run_cli("sweep", "--report-only", "--format", shape, "s")
        assert "journal.jsonl: 3 line" in " ".join(done.out.split()), shape


def test_a_plan_that_may_not_be_read_is_not_called_lost(
    place: Path, servers: FakeServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_cli("sweep", "-q", "--out", "s", "plan.toml", *DEMO)
    real = open
    for name in ("plan.toml", "sweep.json"):

        def denied(path: str, *rest: object, _name: str = name, **more: object) -> object:
            if str(path).endswith(f"s/{_name}"):
                raise PermissionError(13, "Permission denied")
            return real(path, *rest, **more)  # type: ignore[call-overload]

        monkeypatch.setattr("builtins.open", denied)
        done = run_cli("sweep", "--report-only", "s")
        assert (done.code, "permission denied" in done.err, "lost" in done.err) == (3, True, False), done.err
        assert f"s/{name}" in done.err
        assert "chmod u+r" in done.err
    monkeypatch.setattr("builtins.open", real)
    (place / "s" / "plan.toml").unlink()
    assert "has lost its plan.toml" in run_cli("sweep", "--report-only", "s").err


def test_a_changed_plan_does_not_go_on_in_the_old_folder(place: Path, servers: FakeServers) -> None:
    run_cli("sweep", "-q", "--out", "s", "plan.toml", *DEMO)
    (place / "plan.toml").write_text(PLAN.replace("seed = 7", "seed = 8"))
    done = run_cli("sweep", "-q", "--out", "s", "plan.toml", *DEMO)
    assert done.code == 2
    assert "crashlab sweep" in done.err
    assert run_cli("sweep", "s", *DEMO).code == 2


def test_a_baseline_that_does_not_fault_is_inconclusive(
    place: Path, servers: FakeServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.support.fakesweep.EVERY", 1e12)
    (place / "plan.toml").write_text(PLAN.replace("interleave = 2", "max-baseline-runs = 3"))
    done = run_cli("sweep", "--out", "s", "plan.toml", *DEMO)
    assert done.code == 15
    assert len(servers.made) == 3


def test_vllms_parameter_file_is_a_plan(place: Path, servers: FakeServers) -> None:
    rows = [{"moe_backend": "marlin"}, {"kv_cache_dtype": "fp8", "_benchmark_name": "small cache"}]
    (place / "serve.json").write_text(json.dumps(rows))
    done = run_cli("sweep", "--dry-run", "serve.json", *DEMO)
    assert done.code == 0, done.err
    assert "small cache" in done.out
    assert "--kv-cache-dtype fp8" in done.out


def test_one_run_of_an_array_is_made_by_number(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    servers = FakeServers()
    monkeypatch.setattr("crashlab.sweep.arraytask.run_job", servers.run)
    assert run_cli("sweep", "--task", "2", "--out", "s", "plan.toml", *DEMO).code == 0
    assert [run.arm for run in journal.read(str(place / "s")).runs] == ["cudagraph-mode=NONE"]
    done = run_cli("sweep", "--task", "999", "--out", "s", "plan.toml", *DEMO)
    assert (done.code, "--slurm" in done.err) == (2, True)


def test_without_ray_the_error_names_the_extra(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    done = run_cli("sweep", "--on", "ray", "plan.toml", *DEMO)
    assert done.code == 3
    assert "crashlab[ray]" in done.err


@given(
    st.lists(st.sampled_from(["--dry-run", "-q", "--out=x", "--json"]), max_size=3),
    st.lists(st.sampled_from(["--slurm", "-q", "--json"]), max_size=3),
    st.lists(st.one_of(st.text(max_size=6), st.sampled_from(["--", "--out", "-o", "--help"])), max_size=6),
)
def test_the_command_is_whatever_follows_the_first_dashes(
    before: list[str], after: list[str], command: list[str]
) -> None:
    context = _parsed(*before, "plan.toml", *after, "--", *command)
    assert context.params["plans"] == ("plan.toml",)
    assert context.meta["crashlab.sweep.command"] == tuple(command)
    assert context.params["slurm"] == ("--slurm" in after)
