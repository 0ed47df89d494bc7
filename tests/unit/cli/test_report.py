"""``crashlab report`` and ``crashlab bundle`` as a shell sees them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from unittest import mock

import pytest

from crashlab.report import jsonio
from tests.support import corpus, hostile
from tests.support.command import run_cli


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "report.json"
    path.write_text(jsonio.dumps(hostile.report("word")._replace(commands=())))
    return path


@pytest.fixture
def rundir(tmp_path: Path, saved: Path) -> Path:
    run = tmp_path / "run"
    run.mkdir()
    (run / "report.json").write_bytes(saved.read_bytes())
    rows = ({"t": 0, "tokens_per_s": 5}, {"t": 9, "event": "stall", "kind": "fault"})
    (run / "timeline.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run / "server.log").write_text("HF_TOKEN=hf_CANARYabcdefghijkl\n")
    return run


@pytest.mark.parametrize(
    ("form", "start"),
    [("text", "word"), ("md", "<!-- Title"), ("html", "<!doctype html>"), ("json", "{"), ("junit", "<?xml")],
)
def test_each_format_goes_to_standard_output(saved: Path, form: str, start: str) -> None:
    done = run_cli("report", str(saved), "--format", form)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(start)


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("a.html", "<!doctype"),
        ("a.md", "<!--"),
        ("a.json", "{"),
        ("a.xml", "<?xml"),
        ("a.txt", "word"),
        ("a", "word"),
    ],
)
def test_the_name_of_the_output_implies_the_format(
    saved: Path, tmp_path: Path, name: str, start: str
) -> None:
    assert run_cli("report", str(saved), "-o", str(tmp_path / name)) == (0, "", "")
    assert (tmp_path / name).read_text().startswith(start)


def test_json_written_again_is_the_same_report(saved: Path) -> None:
    again = run_cli("report", str(saved), "--format", "json").out
    assert jsonio.loads(again) == jsonio.loads(saved.read_text())


def test_a_run_directory_brings_its_timeline(rundir: Path) -> None:
    page = run_cli("report", str(rundir), "--format", "html").out
    assert 'id="timeline"' in page
    assert "first fault at 0:00:09" in page


def test_html_has_the_commands_to_check_by_hand(saved: Path) -> None:
    assert 'id="check"' in run_cli("report", str(saved), "--format", "html").out


def test_a_dump_is_analysed_on_the_way() -> None:
    done = run_cli("report", str(corpus.path("trap")), "--format", "junit", "--debugger", "never")
    assert done.code == 0
    assert 'classname="crashlab.trap"' in done.out


def test_an_unreadable_dump_is_reported_and_exits_3() -> None:
    done = run_cli("report", str(corpus.path("cut_short")), "--debugger", "never")
    assert done.code == 3
    assert "Unreadable" in done.out


def test_an_issue_text_is_redacted_and_names_the_form(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(jsonio.dumps(hostile.report("HF_TOKEN=hf_CANARYabcdefghijk at /home/canaryuser/x")))
    done = run_cli("report", str(path), "--for", "vllm")
    assert done.code == 0
    assert "CANARY" not in done.out + done.err
    assert "canaryuser" not in done.out + done.err
    assert "https://github.com/vllm-project/vllm/issues/new?template=400-bug-report.yml&title=" in done.err


def test_open_shows_the_page_or_the_form_in_a_browser(saved: Path, tmp_path: Path) -> None:
    with mock.patch("webbrowser.open") as opened:
        assert run_cli("report", str(saved), "--open", "-o", str(tmp_path / "r.html")).code == 0
        assert run_cli("report", str(saved), "--open").code == 0
        assert (
            run_cli("report", str(saved), "--open", "--for", "sglang", "-o", str(tmp_path / "i.md")).code == 0
        )
    addresses = [call.args[0] for call in opened.call_args_list]
    assert addresses[0] == (tmp_path / "r.html").resolve().as_uri()
    assert addresses[1].startswith("file://")
    Path(addresses[1].removeprefix("file://")).unlink()
    assert addresses[2].startswith("https://github.com/sgl-project/sglang/issues/new")


def test_two_reports_are_compared(saved: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    report = hostile.report("word")
    other.write_text(jsonio.dumps(report._replace(verdict=report.verdict._replace(kind="hang"))))
    done = run_cli("report", str(saved), str(other))
    assert done.out.startswith("Two different bugs.")
    as_json = json.loads(run_cli("report", str(saved), str(saved), "--format", "json").out)
    assert as_json["answer"] == "same"
    assert run_cli("report", str(saved), str(other), "--format", "html").code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("a", "b", "c"),
        ("{saved}", "--for", "vllm", "--format", "html"),
        ("{saved}", "--format", "pdf"),
        ("{saved}", "-o", "/no/such/folder/x"),
        ("{saved}", "--for", "nobody"),
    ],
)
def test_wrong_use_is_said_with_a_next_step(saved: Path, arguments: tuple[str, ...]) -> None:
    done = run_cli("report", *(a.format(saved=saved) for a in arguments))
    assert done.code == 2
    assert done.err


@pytest.mark.parametrize("content", ["{", '{"schema": "other/1"}', "[]", "", "nonsense"])
def test_what_is_no_report_exits_3(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    assert run_cli("report", str(path), "--debugger", "never").code == 3


def test_a_folder_without_a_report_exits_3_and_says_what_is_missing(tmp_path: Path) -> None:
    done = run_cli("report", str(tmp_path))
    assert done.code == 3
    assert "report.json" in done.err


def test_a_bundle_is_written_shown_and_clean(rundir: Path, tmp_path: Path) -> None:
    target = tmp_path / "b.zip"
    done = run_cli("bundle", str(rundir), "-o", str(target))
    assert done.code == 0
    assert "1 named secret" in done.err
    with zipfile.ZipFile(target) as archive:
        assert b"CANARY" not in b"".join(archive.read(n) for n in archive.namelist())
    shown = run_cli("bundle", "--check", str(target))
    assert shown.code == 0
    assert "raw/server.log" in shown.out
    assert "stays here" in shown.out


def test_a_bundle_without_a_name_gets_that_of_its_source_and_says_where_it_is(
    rundir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "elsewhere"
    place.mkdir()
    monkeypatch.chdir(place)
    done = run_cli("bundle", f"{rundir}/")
    assert done.code == 0, done.err
    assert done.out.startswith(f"{rundir.name}.zip  ")
    assert f"written to {place}\n" in done.err
    assert run_cli("bundle", "--check", f"{rundir.name}.zip").code == 0
    again = run_cli("bundle", str(rundir))
    assert (again.code, "exists already" in again.err) == (2, True)
    assert run_cli("bundle", str(corpus.path("oob_load"))).out.startswith("oob_load.zip  ")
    monkeypatch.chdir(rundir)
    inside = run_cli("bundle", ".")
    assert (inside.code, "the very folder" in inside.err) == (2, True)


def test_a_doctored_bundle_fails_its_check(rundir: Path, tmp_path: Path) -> None:
    target = tmp_path / "b.zip"
    run_cli("bundle", str(rundir), "-o", str(target))
    with zipfile.ZipFile(target) as archive:
        files = {n: archive.read(n) for n in archive.namelist()}
    files.pop("report.txt")
    files["raw/server.log"] += b"password=hunter22\n"
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    done = run_cli("bundle", "--check", str(tmp_path / "evil.zip"))
    assert done.code == 3
    for word in ("DAMAGED", "STILL LOOKS PRIVATE", "MISSING"):
        assert word in done.out


@pytest.mark.parametrize(
    "arguments",
    [
        ("bundle",),
        ("bundle", "x", "--check", "y"),
        ("bundle", "x", "-o", "y.zip", "--include-memory"),
    ],
)
def test_wrong_use_of_bundle_is_said(arguments: tuple[str, ...]) -> None:
    assert run_cli(*arguments).code == 2
