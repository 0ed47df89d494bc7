"""``crashlab report`` also renders what a sweep and a quality run wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from crashlab.cli.main import cli
from crashlab.errors import CrashlabError, UnreadableInput, UsageError
from crashlab.report.quality import from_json, render

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
QUALITY = GOLDEN / "quality" / "token0.json"
SWEEP = GOLDEN / "report" / "sweep" / "worked.json"


def run(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["report", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


@pytest.mark.parametrize("path", [QUALITY, SWEEP], ids=["quality", "sweep"])
def test_their_json_comes_back_in_every_form(path: Path) -> None:
    back, recorded = json.loads(run(str(path), "--format", "json")), json.loads(path.read_text())
    assert back.pop("tool")["name"] == recorded.pop("tool")["name"] == "crashlab"
    assert back == recorded
    for form in ("text", "md", "html", "junit"):
        assert run(str(path), "--format", form)


def test_a_folder_stands_for_the_result_in_it(tmp_path: Path) -> None:
    (tmp_path / "quality.json").write_text(QUALITY.read_text())
    assert run(str(tmp_path)) == run(str(QUALITY))


def test_a_file_is_written_and_evidence_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "q.json").write_text(QUALITY.read_text())
    run(str(tmp_path / "q.json"), "-o", str(tmp_path / "page.html"))
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    with pytest.raises(UsageError):
        run(str(tmp_path / "q.json"), "-o", str(tmp_path / "q.json"))


@pytest.mark.parametrize("more", [("--for", "vllm"), (str(SWEEP),)])
def test_what_only_a_crash_has_is_refused(more: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        run(str(QUALITY), *more)


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"schema": "crashlab.quality/1"}', '{"schema": "crashlab.quality/9"}']
)
def test_a_damaged_quality_report_says_so(text: str) -> None:
    with pytest.raises(UnreadableInput):
        from_json(text)


def test_every_recorded_quality_report_reads_back_whole() -> None:
    for path in sorted((GOLDEN / "quality").glob("*.json")):
        assert json.loads(render(from_json(path.read_text()), "json")) == json.loads(path.read_text())


def test_a_damaged_one_on_the_command_line_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "q.json").write_text('{"schema": "crashlab.quality/1", ')
    with pytest.raises(CrashlabError, match="not JSON"):
        run(str(tmp_path / "q.json"))
