"""Every command of the tutorial, the field story and the how-to pages is run as it stands there."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.console import Command, commands, missing, unmarked

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
OURS = [DOCS / "tutorial.md", DOCS / "field-story.md", DOCS / "how-to" / "containers.md"]
PAGES = [DOCS / "tutorial.md", DOCS / "field-story.md", *sorted((DOCS / "how-to").glob("*.md"))]
RUNNABLE = [page for page in PAGES if any(one.needs is None for one in commands(page.read_text()))]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def prepared(place: Path) -> dict[str, str]:
    """A folder that looks like a checkout, with ``crashlab`` and ``python`` on the path."""
    (place / "tests").symlink_to(ROOT / "tests")
    programs = place / ".bin"
    programs.mkdir()
    python = shlex.quote(sys.executable)
    for name, line in (("python", f"exec {python}"), ("crashlab", f"exec {python} -m crashlab")):
        (programs / name).write_text(f'#!/bin/sh\n{line} "$@"\n')
        (programs / name).chmod(0o755)
    clean = {k: v for k, v in os.environ.items() if not k.startswith("CUDA_")}
    return {**clean, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


def run(command: Command, place: Path, env: dict[str, str]) -> None:
    # a page has a fixed port; a test must not meet another server there
    text = re.sub(r"--port \d+", lambda _: f"--port {free_port()}", command.text)
    done = subprocess.run(
        ["sh", "-c", text],
        cwd=place,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    where = f"line {command.line}: {command.text}"
    assert done.returncode == command.code, f"{where}\n{done.stderr[-2000:]}"
    absent = missing(command.shown, done.stdout + done.stderr)
    assert not absent, f"{where}\nnot printed: {absent}\n{done.stdout[-3000:]}"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.stem)
def test_the_commands_of_a_page_do_what_it_says(page: Path, tmp_path: Path) -> None:
    env = prepared(tmp_path)
    ran = 0
    for command in commands(page.read_text()):
        # installing is what the CI script does first, in an environment of its own
        if command.needs is None and not command.text.startswith("pip install"):
            run(command, tmp_path, env)
            ran += 1
    assert ran


@pytest.mark.parametrize("page", OURS, ids=lambda page: page.stem)
def test_every_command_is_run_or_says_what_it_needs(page: Path) -> None:
    assert unmarked(page.read_text()) == []
    for command in commands(page.read_text()):
        if command.needs is None:
            assert not re.search(r"\bvllm (serve|bench)\b|^docker\b", command.text), command.text


class TestTheReader:
    PAGE = (
        "x\n```console\n$ one --a \\\n    --b   # exit code 10\nshown …\nmore\n$ two\n```\n"
        "```console\n# needs a GPU\n$ three\n```\n```\ncrashlab four\n```\n\n    crashlab five\n"
    )

    def test_commands_come_with_what_they_print_their_code_and_their_needs(self) -> None:
        one, two, three = commands(self.PAGE)
        assert one == Command("one --a --b", ("shown …", "more"), 10, None, 3)
        assert (two.text, two.shown, two.code, two.line) == ("two", (), 0, 7)
        assert three.needs == "a GPU"

    def test_commands_that_nobody_runs_are_found(self) -> None:
        assert unmarked(self.PAGE) == ["crashlab four", "crashlab five"]

    def test_output_is_compared_piece_by_piece(self) -> None:
        assert (
            missing(
                (
                    "a  b",
                    "c … e",
                ),
                "x a b\nc d e",
            )
            == []
        )
        assert missing(("a b", "… f"), "a b c") == ["f"]
