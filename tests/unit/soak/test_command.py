"""``crashlab soak`` and ``crashlab demo`` in the test's own process."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from crashlab.cli import soakview
from crashlab.cli.demo import _free_port
from crashlab.cli.soakrun import need_packages
from crashlab.errors import MissingTool
from crashlab.soak.attempt import Snapshot
from crashlab.soak.exposure import Exposure
from crashlab.soak.progress import Status
from tests.support.command import run_cli

SNAPSHOT = Snapshot(
    Status("STALLED", 0.0, 130.0, 125.0, "no sign of progress"),
    3700.0,
    Exposure(3600.0, 12_345, 678, 2, 90_000),
    512.4,
    16,
    125.0,
    2,
    1,
    3,
    1,
    4096,
    1,
)


def server(scenario: str, *arguments: str) -> tuple[str, ...]:
    return (
        sys.executable, "-m", "crashlab.demo", "--port", str(_free_port()), "--startup", "0", "--step-ms", "3",
        "--scenario", scenario, *arguments,
    )  # fmt: skip


def soak(out: Path, *arguments: str) -> Any:
    small = (
        "--clients",
        "4",
        "--input-tokens",
        "4:32",
        "--output-tokens",
        "4:16",
        "--fast",
        "--out",
        str(out),
    )
    return run_cli("soak", *small, *arguments)


def test_a_fault_under_load_is_caught_analysed_and_reported(tmp_path: Path) -> None:
    done = soak(tmp_path / "run", "--json", "--", *server("fault", "--after", "80"))
    assert done.code == 10, done.err
    report = json.loads(done.out)
    assert report["verdict"]["function"]["mangled"] == "_Z14epilogue_storeILi128EEvPfPK6float4i"
    assert any("requests in flight" in note for note in report["provenance"])
    assert (tmp_path / "run" / "cases" / "001" / "report.json").exists()


def test_a_soak_of_a_running_server_has_an_end(tmp_path: Path) -> None:
    argv = server("none")
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        try:
            url = f"http://127.0.0.1:{argv[argv.index('--port') + 1]}"
            done = soak(tmp_path / "run", "--url", url, "--requests", "20", "-v")
            assert done.code == 0, done.err
            assert "has no end" not in done.out + (tmp_path / "run" / "report.json").read_text()
            taken = soak(tmp_path / "taken", "--requests", "20", "--", *argv)
            assert f"another server answered on {url.removeprefix('http://')}" in taken.err + taken.out
        finally:
            running.terminate()


def test_a_server_that_is_killed_under_load_has_died_though_the_budget_ended_first(tmp_path: Path) -> None:
    argv = server("none")
    url = f"http://127.0.0.1:{argv[argv.index('--port') + 1]}"
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        killer = threading.Timer(5.0, running.kill)
        killer.start()
        try:
            done = soak(tmp_path / "run", "--url", url, "--for", "8s", "--quality", "20")
        finally:
            killer.cancel()
            running.kill()
    assert done.code == 16, done.out + done.err
    assert f"{url.removeprefix('http://')} takes no connection any more" in " ".join(done.out.split())
    assert "Nothing was found" not in done.out
    told = run_cli("analyze", str(tmp_path / "run"), "--exit-code")
    assert told.code == 16


@pytest.mark.parametrize("address", ["foo", "foo/v1"])
def test_an_address_without_scheme_and_port_is_refused_at_once(tmp_path: Path, address: str) -> None:
    done = soak(tmp_path / "run", "--url", address)
    assert done.code == 2
    assert "neither http:// nor a port" in done.err


def test_a_web_server_that_is_no_model_server_is_named_as_such(tmp_path: Path) -> None:
    argv = (sys.executable, "-m", "http.server", str(port := _free_port()), "--bind", "127.0.0.1")
    with subprocess.Popen(
        argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path
    ) as running:
        try:
            done = soak(tmp_path / "run", "--url", f"http://127.0.0.1:{port}", "--ready-within", "60s")
        finally:
            running.kill()
    words = " ".join(done.out.split())
    assert done.code == 14
    assert "it answers HTTP 404 to /v1/models: no OpenAI-compatible server" in words
    assert "What to do: give the address of a server that speaks OpenAI's API" in words
    assert "<" not in done.out


def test_a_start_that_takes_long_tells_its_last_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(soakview, "line", said.append)
    times = iter([100.0, 100.5, 103.0, 103.5])
    monkeypatch.setattr(soakview, "time", SimpleNamespace(monotonic=lambda: next(times)))
    view = soakview.View(json_lines=False, quiet=False)
    first = SNAPSHOT._replace(status=Status("STARTING", 0.0, 0.0, 0.0, ""), note="waiting: not asked yet")
    for note in ("not asked yet", "nobody listens on h:1", "nobody listens on h:1", "nobody listens on h:1"):
        view.show(first._replace(note=f"waiting: {note}"))
    assert [text.partition(", ")[0] for text in said] == [
        "crashlab: STARTING: waiting: not asked yet",
        "crashlab: STARTING: waiting: nobody listens on h:1",
    ]


def test_a_process_without_stderr_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with soakview.View(json_lines=False, quiet=False) as view:
        view.show(SNAPSHOT)


def test_a_stall_gets_its_hang_dump_and_names_the_loop(tmp_path: Path) -> None:
    done = soak(tmp_path / "run", "--stall-after", "2s", "-v", "--", *server("stall", "--after", "60"))
    assert done.code == 12, done.err
    assert "hang_kernel" in done.out
    assert "asked 1 process for a GPU dump" in done.err


def test_a_stall_without_hang_dumps_is_still_a_stall(tmp_path: Path) -> None:
    command = server("stall", "--after", "60")
    done = soak(tmp_path / "run", "--stall-after", "2s", "--no-hang-dumps", "-q", "--", *command)
    assert done.code == 12, done.err
    assert "no GPU dump could be taken" in done.out
    assert done.err == ""


def test_attempts_are_counted_each_with_its_own_case(tmp_path: Path) -> None:
    command = server("exit0", "--after", "40")
    done = soak(tmp_path / "run", "--repeat", "2", "--canary-every", "0", "--", *command)
    assert done.code == 16, done.err
    assert "2 of 2 attempts ended in a failure" in done.err
    assert sorted(path.name for path in (tmp_path / "run" / "cases").iterdir()) == ["001", "002"]
    seeds = [
        json.loads(line)["seed"]
        for line in (tmp_path / "run" / "requests.jsonl").read_text().splitlines()
        if '"record"' in line
    ]
    assert seeds == [0, 1], "another attempt sends other requests"


def test_a_clean_run_says_what_it_does_not_mean(tmp_path: Path) -> None:
    done = soak(tmp_path / "run", "--requests", "20", "--json-lines", "--", *server("none"))
    assert done.code == 0, done.err
    assert "It does not mean that the server is free of faults" in " ".join(done.out.split())
    assert all(json.loads(line) for line in done.err.splitlines())
    assert not (tmp_path / "run" / "cases").exists()


def test_a_command_that_does_not_exist_is_told_and_the_record_is_ended(tmp_path: Path) -> None:
    done = soak(tmp_path / "run", "--", "/nonexistent/server")
    assert done.code == 3
    assert "cannot be started" in done.err
    assert "run-ended" in (tmp_path / "run" / "events.jsonl").read_text()


@pytest.mark.parametrize("scenario", ["exit0", "never-ready"])
def test_the_demo_ends_well_when_it_found_what_was_planted(tmp_path: Path, scenario: str) -> None:
    done = run_cli("demo", "--scenario", scenario, "--fast", "--out", str(tmp_path / "run"))
    assert done.code == 0, done.err
    assert "as planted" in done.err


def test_the_demo_fails_when_it_found_something_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from crashlab.cli import demo

    wrong = demo._SCENES["exit0"]._replace(verdict="garbage")
    monkeypatch.setitem(demo._SCENES, "exit0", wrong)
    done = run_cli("demo", "--scenario", "exit0", "--fast", "--out", str(tmp_path / "run"))
    assert done.code == 1
    assert "but garbage output was planted" in done.err


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingTool, match="aiohttp"):
        need_packages()


def test_one_line_tells_everything_that_is_known() -> None:
    line = soakview.plain_of(SNAPSHOT)
    for words in (
        "STALLED",
        "1h 01m",
        "12,345",
        "678",
        "512",
        "in flight 16",
        "125.0 s ago",
        "4,096 bytes",
        "signs of a GPU fault 1",
    ):
        assert words in line


def test_what_is_unknown_is_left_out() -> None:
    empty = SNAPSHOT._replace(exposure=Exposure(), last_byte_age=None, faults=0, dump_bytes=0, flagged=0)
    assert "steps" not in soakview.plain_of(empty)
    fields = soakview.fields_of(empty)
    assert "engine_steps" not in fields
    assert "last_byte_age" not in fields


def test_the_live_table_has_the_same_rows_and_escapes_control_characters() -> None:
    from rich.console import Console

    console = Console(width=120, record=True, file=io.StringIO())
    console.print(soakview.table_of(SNAPSHOT._replace(note="bad \x1b[31m note")))
    text = console.export_text()
    assert "12,345" in text
    assert "\x1b" not in text


def test_without_a_terminal_there_is_a_line_a_minute_and_one_at_each_change(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(soakview.time, "monotonic", lambda: now[0])
    with soakview.View(json_lines=False, quiet=False) as view:
        for second in range(130):
            now[0] = float(second)
            state = "IDLE" if second < 70 else "PROGRESSING"
            view.show(SNAPSHOT._replace(status=SNAPSHOT.status._replace(state=state)))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in lines] == [
        "crashlab: IDLE", "crashlab: IDLE", "crashlab: PROGRESSING",
    ]  # fmt: skip


def test_on_a_terminal_the_view_is_live_and_lines_stand_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soakview.sys.stderr, "isatty", lambda: True, raising=False)
    with soakview.View(json_lines=False, quiet=False) as view:
        assert view._live is not None
        view.show(SNAPSHOT)
        view.say("something [bold]happened[/bold]")
    assert view._live is None
