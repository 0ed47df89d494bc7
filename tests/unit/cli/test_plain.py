"""The call that is read without click: it means the same as click's reading, and what it must not cost."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from crashlab.cli import plain
from crashlab.facts import Report
from crashlab.report import build
from crashlab.report.options import AnalyzeOptions
from tests.support import corpus
from tests.support.command import run_cli

ROOT = Path(__file__).resolve().parents[3]
PLAIN = [
    ["CORE"],
    ["--fast", "CORE"],
    ["--json", "CORE"],
    ["CORE", "--fast", "--json"],
    ["--fast", "--fast", "CORE", "--exit-code"],
    ["CORE", "--json", "OTHER", "--fast", "CORE"],
    ["missing"],
    ["--exit-code", ""],
]


def _arguments(words: list[str]) -> list[str]:
    paths = {"CORE": str(corpus.path("oob_load")), "OTHER": str(corpus.path("cut_short"))}
    return ["analyze", *(paths.get(word, word) for word in words)]


@pytest.fixture(autouse=True)
def _utf8_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))


@pytest.mark.parametrize("words", PLAIN, ids=" ".join)
def test_click_reads_a_plain_call_the_same_way(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = _arguments(words)
    assert plain.asked(arguments) is not None
    asked: list[tuple[tuple[str, ...], AnalyzeOptions]] = []
    reports: dict[tuple[str, ...], Report] = {}
    real = build.analyze

    def analyze(paths: tuple[str, ...], options: AnalyzeOptions) -> Report:
        asked.append((paths, options))
        if paths not in reports:  # the same for both: it tells when it was made, and in what time
            reports[paths] = real(paths, AnalyzeOptions(fast=True))
        return reports[paths]

    monkeypatch.setattr(build, "analyze", analyze)
    mine = run_cli(*arguments)
    monkeypatch.setattr(plain, "asked", lambda _arguments: None)
    theirs = run_cli(*arguments)
    assert mine == theirs
    assert len(asked) == 2
    assert asked[0] == asked[1]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--help"],
        ["analyze"],
        ["analyze", "--fast"],
        ["analyze", "--help", "x.core"],
        ["analyze", "--jsn", "x.core"],
        ["analyze", "-q", "x.core"],
        ["analyze", "--", "--fast"],
        ["analyze", "-", "x.core"],
        ["analyze", "--log", "x.log", "x.core"],
        ["analyze", "--debugger", "never", "x.core"],
        ["analyze", "x.core", os.curdir],
        ["inspect", "x.core"],
        ["x.core", "analyze"],
    ],
    ids=" ".join,
)
def test_everything_else_is_left_to_click(arguments: list[str]) -> None:
    assert plain.asked(arguments) is None


def test_completion_is_left_to_click(monkeypatch: pytest.MonkeyPatch) -> None:
    assert plain.asked(["analyze", "x.core"]) is not None
    monkeypatch.setenv("_CRASHLAB_COMPLETE", "bash_complete")
    assert plain.asked(["analyze", "x.core"]) is None


@pytest.mark.parametrize("output", [None, io.TextIOWrapper(io.BytesIO(), encoding="latin-1")])
def test_output_that_is_no_utf8_text_is_left_to_click(
    output: io.TextIOWrapper | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", output)
    assert plain.asked(["analyze", "x.core"]) is None


_HEAVY = (
    "click inspect ast dataclasses subprocess threading tempfile ctypes jinja2 datetime locale shutil hashlib lzma "
    "tomllib tomli random importlib.metadata crashlab.sass.operands crashlab.sass.liveness crashlab.logs"
)


@pytest.mark.parametrize("form", [["--json"], []], ids=["json", "text"])
@pytest.mark.parametrize("name", ["oob_load", "badpc", "tma", "shared_oob", "trap", "multi"])
def test_a_hurried_answer_loads_only_what_it_needs(name: str, form: list[str]) -> None:
    """Each of these modules costs from one to thirty per cent of it. Nor may an annotation be compiled, as
    typing.NamedTuple does with one that is a string: the first costs more than any module of ours."""
    code = (
        "import builtins, contextlib, os, sys\n"
        "compiled, real, before = [], compile, set(sys.modules)\n"
        "def counting(source, *rest, **more):\n"
        "    compiled.extend([source] if isinstance(source, str) else [])\n"
        "    return real(source, *rest, **more)\n"
        "builtins.compile = counting\n"
        "from crashlab.cli import main\n"
        "with contextlib.redirect_stdout(open(os.devnull, 'w', encoding='utf-8')):\n"
        "    with contextlib.suppress(SystemExit):\n"
        "        main(sys.argv[1:])\n"
        f"print(sorted(set({_HEAVY.split()!r}) & (set(sys.modules) - before)), compiled)\n"
        "print('crashlab.signatures.key' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "analyze", "--fast", *form, str(corpus.path(name))],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
    )
    assert done.stdout.split("\n") == ["[] []", "True", ""], done.stderr


@pytest.mark.parametrize("form", [["--json"], []], ids=["json", "text"])
def test_a_reader_that_went_away_is_no_error(form: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    argv = [sys.executable, "-m", "crashlab", "analyze", "--fast", *form, str(corpus.path("oob_load"))]
    done = subprocess.run(argv, stdout=writer, stderr=subprocess.PIPE, timeout=60, cwd=ROOT)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("form", [["--json"], []], ids=["json", "text"])
def test_a_full_disk_is_told(form: list[str]) -> None:
    argv = [sys.executable, "-m", "crashlab", "analyze", "--fast", *form, str(corpus.path("oob_load"))]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, timeout=60, cwd=ROOT)
    assert done.returncode == 3
    assert b"could not be written: No space left on device" in done.stderr
