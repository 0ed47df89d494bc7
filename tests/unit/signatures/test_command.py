"""``crashlab signatures``: what is printed where, and with which exit status."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from crashlab.cli.main import cli
from crashlab.errors import UnreadableInput, UsageError
from crashlab.report import jsonio
from crashlab.signatures import catalogue, placeholders
from tests.unit.signatures.material import DATA, env, report_of, seed_sm120


def _run(*args: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(
        cli, ["signatures", *args], input=stdin, standalone_mode=False, catch_exceptions=False
    )


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.json"
    path.write_text(jsonio.dumps(report_of(seed_sm120(), environment=env(driver="580.159"))))
    return path


def test_match_prints_the_argument(report: Path) -> None:
    done = _run("match", str(report), "--env", "cudnn=9.19.0.56", "--env", "torch=2.11.0+cu130")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("match")
    assert "CUDNN-SM120-FORT-STS" in lines[0]
    assert lines[1].startswith("  consistent with cuDNN's own tile")
    assert any(line.startswith("    fix      cuDNN >= 9.23.2") for line in lines)
    assert any("less consistent with FlashInfer" in line for line in lines)
    assert done.return_value == 0


def test_match_as_json_uses_the_reports_names(report: Path) -> None:
    done = _run("match", str(report), "--json", "--env", "cudnn=9.19.0.56")
    data = json.loads(done.stdout)
    first = data["signatures"][0]
    assert first["id"] == "CUDNN-SM120-FORT-STS"
    assert set(first["hypotheses"][0]) == {"cause", "for", "against", "unknown"}


def test_match_reads_a_run_directory_and_standard_input(report: Path) -> None:
    for args, stdin in (((str(report.parent),), None), (("-",), report.read_bytes())):
        assert "CUDNN-SM120-FORT-STS" in _run("match", *args, stdin=stdin).stdout


def test_match_works_on_a_log_alone() -> None:
    done = _run("match", "--log", str(DATA / "vllm_nodump.log"), "-v")
    assert "ASYNC-VICTIM-SITE" in done.stdout
    assert "reads as: " in done.stdout


def test_match_says_when_nothing_fits(tmp_path: Path) -> None:
    path = tmp_path / "empty.log"
    path.write_text("all is well\n")
    assert _run("match", "--log", str(path)).stdout == "No known failure fits what was captured.\n"


def test_match_takes_environment_files(report: Path) -> None:
    done = _run("match", str(report), "--env", str(DATA / "pip_freeze.txt"))
    assert done.stdout.startswith("match")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"no json", "neither JSON nor a GPU core dump"),
        (b"[1]", "has no verdict"),
        (b'{"verdict": 1}', "has no verdict"),
        (b"[" * 100_000, "neither JSON"),
    ],
)
def test_match_refuses_what_is_no_report(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(content)
    with pytest.raises(UnreadableInput, match=words) as caught:
        _run("match", str(path))
    assert caught.value.hint


def test_match_needs_something_to_match(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to match"):
        _run("match")
    with pytest.raises(UnreadableInput, match="cannot read"):
        _run("match", str(tmp_path / "missing.json"))


def test_a_dump_is_analysed_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import crashlab

    path = tmp_path / "core"
    path.write_bytes(b"\x7fELF and so on")
    monkeypatch.setattr(crashlab, "analyze", lambda *paths: report_of(seed_sm120()))
    assert "CUDNN-SM120-FORT-STS" in _run("match", str(path)).stdout


def test_list_filters() -> None:
    done = _run("list", "--kind", "cause", "--status", "open", "--arch", "sm_120", "--find", "flashinfer")
    ids = [line.split()[0] for line in done.stdout.splitlines()]
    assert "B12X-PREFILL-WRITE" in ids
    assert "CUDNN-SM120-FORT-STS" not in ids  # fixed
    assert "CUTLASS-MOE-MM-SM90" not in ids
    data = json.loads(_run("list", "--json", "--confidence", "low").stdout)
    assert {entry["confidence"] for entry in data["entries"]} == {"low"}
    with pytest.raises(UsageError, match="no architecture"):
        _run("list", "--arch", "blackwell")


def test_show_is_one_entry_in_words_or_json() -> None:
    done = _run("show", "cudnn-sm120-fort-sts")
    assert done.stdout.startswith("### CUDNN-SM120-FORT-STS")
    data = json.loads(_run("show", "NAN-TO-BANG", "--json").stdout)
    assert data["reads_as"]
    assert data["match"][0]["criteria"] == [["garbage", None, ["token0"]]]
    with pytest.raises(UsageError, match="no signature") as caught:
        _run("show", "CUDNN-SM120")
    assert "CUDNN-SM120-FORT-STS" in (caught.value.hint or "")


def test_show_breaks_lines_at_the_terminal_and_spells_placeholders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for entry in catalogue.bundled():
        shown = _run("show", entry.id).stdout
        assert re.search(r"\{[a-z_]+\}", shown) is None, entry.id
        words = [line for line in shown.splitlines() if len(line) > 80]
        assert all(" " not in line.strip("- ") for line in words), entry.id
    shown = _run("show", "CUDNN-SM120-FORT-STS").stdout
    assert "<the opcode>" in shown
    assert "filled in from the crash" in shown


@pytest.mark.parametrize("name", ["bad id", "x", "", "CUDNN-SM120-FORT-STS"])
def test_new_refuses_an_id_that_no_entry_can_have_as_misuse(report: Path, name: str) -> None:
    with pytest.raises(UsageError, match="--id") as caught:
        _run("new", str(report), "--id", name)
    assert caught.value.hint


@pytest.mark.parametrize("command", ["match", "new"])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"a text", "core dump.$"),
        (b'{"a": ', "cut short or damaged"),
    ],
)
def test_what_is_no_report_is_said_in_plain_words(
    tmp_path: Path, command: str, content: bytes, words: str
) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(UnreadableInput, match=words) as caught:
        _run(command, str(path))
    assert "Expecting" not in str(caught.value)


def test_new_then_check_then_match(report: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    target = folder / "mine.toml"
    done = _run("new", str(report), "--id", "MINE", "-o", str(target))
    assert "wrote" in done.stderr
    assert done.stdout == ""
    done = _run("check", "--catalogue", str(folder), "-v")
    assert done.return_value == 3
    left = [line.split("still says")[0] for line in done.stdout.splitlines() if line.startswith("FAIL")]
    assert left == ["FAIL MINE: references ", "FAIL MINE: cause ", "FAIL MINE: tests "]
    text = target.read_text()
    for placeholder, words in (
        (placeholders.REFERENCE, "owner/repository#12"),
        (placeholders.CAUSE, "an index that counts one row too many"),
        (placeholders.TEST, "a size that is a multiple of the tile must be clean"),
    ):
        assert text.count(placeholder) == 1
        text = text.replace(placeholder, words)
    target.write_text(text)
    done = _run("check", "--catalogue", str(folder), "-v")
    assert done.return_value == 0
    assert done.stdout.splitlines()[-1] == "1 entry, 2 fixtures, 0 problems"
    assert "MINE" in _run("match", str(report), "--catalogue", str(folder)).stdout
    with pytest.raises(UsageError, match="Cannot write"):
        _run("new", str(report), "-o", str(target))
    assert _run("new", str(report)).stdout.startswith("# A draft")


def test_check_of_the_bundled_entries_is_clean() -> None:
    done = _run("check")
    assert done.return_value == 0
    assert " 0 problems" in done.stdout


def test_check_fails_with_3_and_names_the_entry(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text('id = "X-Y-Z"\n')
    done = _run("check", "--catalogue", str(tmp_path))
    assert done.return_value == 3
    assert done.stdout.startswith("FAIL x.toml: X-Y-Z: ")
    data = json.loads(_run("check", "--catalogue", str(tmp_path), "--json").stdout)
    assert data["entries"] == 0
    assert data["problems"]


@pytest.mark.parametrize("command", ["list", "show", "match", "new", "check"])
def test_every_help_text_has_an_example(command: str) -> None:
    assert "Example" in CliRunner().invoke(cli, ["signatures", command, "--help"]).stdout


def test_hostile_text_in_a_report_is_shown_not_obeyed(tmp_path: Path) -> None:
    verdict = seed_sm120()
    kernel = verdict.kernel
    assert kernel is not None
    name = f"{kernel.name}\x1b[31m\nmatch 1.00 FAKE"
    path = tmp_path / "report.json"
    path.write_text(jsonio.dumps(report_of(verdict._replace(kernel=kernel._replace(name=name)))))
    done = _run("match", str(path), "-v")
    assert "\x1b" not in done.stdout
    assert not any(line.startswith("match 1.00") for line in done.stdout.splitlines())
