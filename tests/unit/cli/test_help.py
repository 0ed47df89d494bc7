"""Every command's --help, held against recorded text; and completion, in the shells that are here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from crashlab.cli.main import cli
from tests.support import golden

ROOT = Path(__file__).resolve().parents[3]
RECORDED_WITH = "8.5"
"""Click lays its help out a little differently from release to release."""


def _paths(command: click.Command, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = [path]
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None, f"{name} is listed and does not exist"
            found += _paths(below, (*path, name))
    return found


PATHS = _paths(cli)


@pytest.mark.parametrize("path", PATHS, ids=lambda p: " ".join(p) or "crashlab")
def test_help_text_is_the_recorded_one(path: tuple[str, ...], update_golden: bool) -> None:
    if not version("click").startswith(f"{RECORDED_WITH}."):
        pytest.skip(f"help was recorded with click {RECORDED_WITH}, this is {version('click')}")
    result = CliRunner().invoke(
        cli, [*path, "--help"], prog_name="crashlab", env={"COLUMNS": "100"}, terminal_width=100
    )
    assert result.exit_code == 0
    golden.check(f"help/{'-'.join(path) or 'crashlab'}.txt", result.output, update=update_golden)


@pytest.mark.parametrize("path", [p for p in PATHS if p], ids=" ".join)
def test_help_has_an_example_that_names_the_command(path: tuple[str, ...]) -> None:
    output = CliRunner().invoke(cli, [*path, "--help"], prog_name="crashlab").output
    if len(path) == 1:
        assert f"  crashlab {path[0]}" in output.partition("Options:")[0]


def test_each_command_says_the_same_thing_of_itself_in_the_list_and_in_its_own_help() -> None:
    listed = CliRunner().invoke(cli, ["--help"], env={"COLUMNS": "200"}).output
    for path in PATHS:
        if len(path) == 1:
            assert f"\n  {path[0]} " in listed


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_printed_for_each_shell(shell: str) -> None:
    result = CliRunner().invoke(cli, ["completion", shell])
    assert result.exit_code == 0
    assert f"_CRASHLAB_COMPLETE={shell}_complete" in result.output


def test_bash_takes_the_script_and_completes_a_command(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash on this machine")
    program = tmp_path / "crashlab"
    program.write_text(f"#!{sys.executable}\nfrom crashlab.cli import main\nmain()\n")
    program.chmod(0o755)
    script = CliRunner().invoke(cli, ["completion", "bash"]).output
    ask = f"COMP_WORDS=(crashlab anal); COMP_CWORD=1; _crashlab_completion {program}; echo ${{COMPREPLY[@]}}"
    found = subprocess.run(
        [bash, "--norc", "-c", f"{script}\n{ask}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert found.stdout.split() == ["analyze"], found.stderr


@pytest.mark.parametrize("path", [p for p in PATHS if p], ids=" ".join)
def test_examples_fit_on_a_screen_of_80_columns(path: tuple[str, ...]) -> None:
    output = CliRunner().invoke(cli, [*path, "--help"], prog_name="crashlab", terminal_width=80).output
    assert not [line for line in output.partition("Options:")[0].splitlines() if len(line) > 80]
