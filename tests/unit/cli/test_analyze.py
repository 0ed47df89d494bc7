"""``crashlab analyze``: golden output for every shipped dump, exit codes, options, bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crashlab.sass.disassembler import find_nvdisasm
from tests.support import corpus, golden
from tests.support.command import run_cli

needs_nvdisasm = pytest.mark.skipif(find_nvdisasm(None) is None, reason="nvdisasm is not installed")
EXIT = {"gpu-fault": 10, "device-assert": 10, "trap": 10, "hang": 12, "no-fault": 0}


@needs_nvdisasm
@pytest.mark.parametrize("name", corpus.CORE)
def test_the_text_report_of_every_dump(name: str, update_golden: bool) -> None:
    found = run_cli("analyze", "--debugger", "never", str(corpus.path(name)))
    golden.check(f"analyze/{name}.txt", golden.stable_text(found.out), update=update_golden)
    assert max(len(found.out.splitlines()), 1) <= 50, "the text form fits one screen"


@needs_nvdisasm
@pytest.mark.parametrize("name", ["shared_oob", "graph_full", "hang", "cut_short", "seed_sm120"])
def test_the_json_report_of_telling_dumps(name: str, update_golden: bool) -> None:
    found = run_cli("analyze", "--json", "--debugger", "never", str(corpus.path(name)))
    golden.check(f"analyze/{name}.json", golden.stable_json(found.out), update=update_golden)


@pytest.mark.parametrize("name", ["oob_load", "graph", "barrier_hang"])
def test_fast_output_needs_no_external_process(
    name: str, update_golden: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    import subprocess

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise AssertionError("--fast started a process")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    found = run_cli("analyze", "--fast", str(corpus.path(name)))
    assert found.code == 0
    golden.check(f"analyze/{name}.fast.txt", golden.stable_text(found.out), update=update_golden)


@pytest.mark.parametrize("name", corpus.names())
def test_exit_code_tells_the_kind_when_asked(name: str) -> None:
    kind = corpus.manifest()[name]["expect"]["kind"]
    assert run_cli("analyze", "--fast", "-q", "--exit-code", str(corpus.path(name))).code == EXIT[kind]
    assert run_cli("analyze", "--fast", "-q", str(corpus.path(name))).code == 0


def test_an_unreadable_dump_prints_its_json_and_exits_3() -> None:
    found = run_cli("analyze", "--json", str(corpus.path("cut_short")))
    assert found.code == 3
    report = json.loads(found.out)
    assert report["verdict"]["kind"] == "unreadable"
    assert report["inputs"][0]["complete"] is False


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ([], 2, "crashlab analyze core.nvcudmp"),
        (["--nonsense"], 2, "--nonsense"),
        (["--env", "/nonexistent/file", "x"], 2, "--env"),
        (["--log", "/nonexistent/log"], 3, "/nonexistent/log"),
        (["--transcript", "/nonexistent/transcript"], 3, "transcript"),
        (["--debugger-timeout", "-1", "x"], 2, "-1"),
    ],
)
def test_bad_usage_names_the_next_step(arguments: list[str], code: int, says: str) -> None:
    found = run_cli("analyze", *arguments)
    assert found.code == code
    assert says in found.err
    assert "Traceback" not in found.out + found.err


@pytest.mark.parametrize("name", ["/nonexistent.core", "/etc/passwd", "/proc/self/exe", "/dev/zero", ""])
def test_what_is_no_dump_is_a_report_and_exit_3(name: str) -> None:
    found = run_cli("analyze", name)
    assert found.code == 3
    assert found.out.startswith("Unreadable: ")


def test_show_commands_quotes_hostile_paths(tmp_path: Path) -> None:
    target = tmp_path / "a b'$(touch x).core"
    target.write_bytes(corpus.raw("oob_load"))
    found = run_cli("analyze", "--fast", "--show-commands", str(target))
    assert "cuda-gdb -nx -batch" in found.out
    assert "registers --faulting" in found.out
    assert "'\\''" in found.out or '"\'"' in found.out


def test_environment_facts_are_taken_and_shown_with_their_source() -> None:
    found = run_cli("analyze", "--fast", "--json", "--env", "cudnn=9.19.0.56", str(corpus.path("seed_sm120")))
    environment = json.loads(found.out)["environment"]
    assert environment["cudnn"] == {"value": "9.19.0.56", "source": "--env"}
    assert environment["driver"]["value"] == "580.159"


def test_several_dumps_are_one_crash(update_golden: bool) -> None:
    found = run_cli("analyze", "--fast", str(corpus.path("hang")), str(corpus.path("oob_load")))
    golden.check("analyze/two-dumps.txt", golden.stable_text(found.out), update=update_golden)


def test_quiet_prints_one_line() -> None:
    assert run_cli("analyze", "--fast", "-q", str(corpus.path("oob_load"))).out.count("\n") == 1


def test_a_transcript_from_standard_input_gives_a_weaker_verdict() -> None:
    text = (
        "Opening GPU coredump: /x/core\n\nCUDA Exception: Warp Illegal Address\n"
        "The exception was triggered at PC 0x7f030b7a0ba0 (faults.cu:35)\n"
    )
    found = run_cli("analyze", "--json", "--transcript", "-", stdin=text.encode())
    verdict = json.loads(found.out)["verdict"]
    assert verdict["kind"] == "gpu-fault"
    assert verdict["pc"] == "0x7f030b7a0ba0"
    assert verdict["pc_source"] == "cuda-gdb"
    assert verdict["confidence"]["level"] != "high"
    assert run_cli("analyze", "--exit-code", "--transcript", "-", stdin=text.encode()).code == 11


def test_text_that_is_no_transcript_is_refused() -> None:
    found = run_cli("analyze", "--transcript", "-", stdin=b"hello\n")
    assert found.code == 3
    assert "--log" in found.err
