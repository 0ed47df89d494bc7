"""``crashlab quality`` from the command line to the exit code, against real demo servers."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.support.command import Completed, run_cli

pytestmark = pytest.mark.slow
QUICK = ("--questions", "80", "--no-ladder", "--seed", "3")
SCHEMA = json.loads((resources.files("crashlab") / "report" / "quality" / "quality.schema.json").read_text())


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("known") / "tasks.jsonl"
    assert run_cli("quality", "--write-tasks", str(path), "--questions", "80", "--seed", "3").code == 0
    return str(path)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def demo(known: str, *options: str, port: int | None = None) -> list[str]:
    return [
        sys.executable, "-m", "crashlab.demo", "--startup", "0.1", "--step-ms", "2", "--answers", known,
        "--accuracy", "0.8", "--noise", "0.02", "--port", str(port or free_port()), *options,
    ]  # fmt: skip


def ask(tmp_path: Path, a: list[str], b: list[str] | None, *options: str) -> tuple[Completed, dict[str, Any]]:
    out = tmp_path / "run"
    arms = ["--a", "--", *a, *(["--b", "--", *b] if b is not None else [])]
    done = run_cli("quality", *QUICK, "--out", str(out), *options, *arms)
    found = out / "quality.json"
    report = json.loads(found.read_text()) if found.exists() else {}
    if report:
        jsonschema.validate(report, SCHEMA)
    return done, report


@contextmanager
def running(argv: list[str]) -> Iterator[str]:
    """A demo server that runs already."""
    url = f"http://127.0.0.1:{argv[argv.index('--port') + 1]}"
    server = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with suppress(OSError):
                urllib.request.urlopen(f"{url}/health", timeout=1)
                break
            time.sleep(0.05)
        yield url
    finally:
        server.terminate()
        server.wait(10)


def test_garbage_ends_with_13_and_everything_is_in_the_run_directory(tmp_path: Path, known: str) -> None:
    done, report = ask(tmp_path, demo(known), demo(known, "--degrade", "token0"))
    assert done.code == 13, done.err
    assert done.out.startswith("Arm B answers garbage")
    assert report["verdict"]["kind"] == "garbage"
    assert report["verdict"]["garbage"] == ["token0"]
    assert report["arms"][1]["passes"][0]["counts"]["invalid"] == 80
    assert "NAN-TO-BANG" in [found["id"] for found in report["signatures"]]
    out = tmp_path / "run"
    rows = [json.loads(line) for line in (out / "answers.jsonl").read_text().splitlines()]
    assert {row["pass"] for row in rows} == {"A1", "A1-prose", "A2", "A2-prose", "B1", "B1-prose"}
    assert len(rows) == 3 * (80 + 12)
    tasks = [json.loads(line) for line in (out / "tasks.jsonl").read_text().splitlines()]
    assert {task["id"] for task in tasks} == {row["task"] for row in rows if "prose" not in row["pass"]}
    run = json.loads((out / "run.json").read_text())
    assert run["arms"]["B"]["argv"][-2:] == ["--degrade", "token0"]
    assert (out / "quality.html").read_text().startswith("<!doctype html>")
    assert (out / "manifest.json").exists()
    assert {path.name for path in (out / "output").glob("*.stderr.log")} == {
        "001.stderr.log",
        "002.stderr.log",
    }


def test_the_same_server_twice_shows_no_difference(tmp_path: Path, known: str) -> None:
    done, report = ask(tmp_path, demo(known), demo(known), "-q")
    assert done.code == 0, done.err
    assert done.out.startswith("No difference between A and B shown in 80 paired questions")
    assert done.out.count("\n") == 1
    assert report["floor"]["pairs"]["both"] > 40


def test_a_server_that_drops_a_fifth_shows_errors_and_no_wrong_answers(tmp_path: Path, known: str) -> None:
    done, report = ask(tmp_path, demo(known), demo(known, "--drop", "0.2"), "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out) == report
    counts = report["arms"][1]["passes"][0]["counts"]
    assert 5 <= counts["error"] <= 32
    assert sum(counts[name] for name in ("correct", "wrong", "invalid", "error")) == counts["asked"] == 80
    assert counts["invalid"] == 0
    assert report["pair"]["left_out"] == counts["error"]
    assert counts["correct"] >= 0.6 * (80 - counts["error"])


def test_servers_that_run_already_are_asked_and_left_alone(tmp_path: Path, known: str) -> None:
    with running(demo(known)) as a, running(demo(known, "--degrade", "loop")) as b:
        log = tmp_path / "b.log"
        log.write_text("INFO: Using FlashInferCutlassNvFp4LinearKernel for NVFP4 GEMM\n")
        target = tmp_path / "report.html"
        done = run_cli(
            "quality", *QUICK, "--a-url", a, "--b-url", f"{b}/v1", "--b-log", str(log), "--fact", "arch=sm_120",
            "--out", str(tmp_path / "run"), "--format", "html", "-o", str(target),
        )  # fmt: skip
        assert done.code == 13, done.err
        assert "Arm B answers garbage" in target.read_text()
        for url in (a, b):
            assert urllib.request.urlopen(f"{url}/health", timeout=5).status == 200
    report = json.loads((tmp_path / "run" / "quality.json").read_text())
    assert report["arms"][1]["settings"]["linear_kernel"]["source"] == "log"
    assert report["arms"][1]["settings"]["arch"]["value"] == "sm_120"


def test_secrets_of_a_command_stay_out_of_the_run_directory(tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = f"{sys.executable} -c 'raise SystemExit(3)' --api-key planted-key-one"
    done = run_cli(
        "quality", *QUICK, "--out", str(out), "--a-env", "HF_TOKEN=planted-key-two", "--a", command
    )
    assert done.code == 14, done.err
    for path in out.rglob("*"):
        if path.is_file():
            assert b"planted-key" not in path.read_bytes(), path


def test_one_server_alone(tmp_path: Path, known: str) -> None:
    done, report = ask(tmp_path, demo(known), None, "--expect", "80%")
    assert done.code == 0, done.err
    assert done.out.startswith("No garbage seen in 80 answers of one server")
    assert report["pair"] is None


def test_a_rerun_asks_the_same_questions(tmp_path: Path, known: str) -> None:
    digests = set()
    for name in ("one", "two"):
        _, report = ask(tmp_path / name, demo(known), None, "--no-floor")
        digests.add(report["suite"]["sha256"])
        assert {seed["what"] for seed in report["seeds"]} == {"questions", "examples"}
    assert len(digests) == 1


def test_a_server_that_dies_while_it_is_asked_gets_its_post_mortem_and_exit_code(
    tmp_path: Path, known: str
) -> None:
    a = demo(known, "--scenario", "fault", "--after", "40")
    done, report = ask(tmp_path, a, demo(known), "--fast")
    assert done.code == 10, done.err
    assert report["verdict"]["kind"] == "inconclusive"
    assert "while it was asked" in report["arms"][0]["problem"]
    assert "epilogue_store" in (tmp_path / "run" / "report.txt").read_text()
    assert "Arm B was not asked" in done.out


def test_a_server_that_never_answers_ends_with_14(tmp_path: Path) -> None:
    done, report = ask(tmp_path, [sys.executable, "-c", "raise SystemExit(3)"], None)
    assert done.code == 14, done.err
    assert report["verdict"]["kind"] == "inconclusive"
    assert "exit code 3" in done.out
    assert "none of 80 questions" in done.out
    assert "none of 80 questions" in (tmp_path / "run" / "quality.html").read_text()


def test_a_missing_program_is_told(tmp_path: Path) -> None:
    done, _ = ask(tmp_path, [str(tmp_path / "no-such-server")], None)
    assert done.code in (2, 3), done.err
    assert "no-such-server" in done.err


def test_lm_eval_that_is_not_installed_is_a_missing_prerequisite(
    tmp_path: Path, known: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    done, _ = ask(tmp_path, demo(known), None, "--lm-eval", "gsm8k")
    assert done.code == 3
    assert "lm-eval is not installed" in done.err


@pytest.mark.parametrize(
    ("flaw", "code", "says"),
    [
        ((), 0, "Nothing was found"),
        (("--degrade", "token0", "--degrade-share", "0.4"), 13, "answers garbage"),
    ],
)
def test_a_soak_asks_the_server_that_came_through(
    tmp_path: Path, known: str, flaw: tuple[str, ...], code: int, says: str
) -> None:
    out = tmp_path / "run"
    done = run_cli(
        "soak", "--quality", "60", "--for", "2s", "--canary-every", "0", "--clients", "4", "--seed", "3", "-v",
        "--out", str(out), "--", *demo(known, *flaw),
    )  # fmt: skip
    assert done.code == code, done.err
    assert says in done.out
    assert "Asked at the end" in done.out
    report = json.loads((out / "quality.json").read_text())
    assert report["suite"]["questions"] == 60
    assert len((out / "answers.jsonl").read_text().splitlines()) == 2 * (60 + 12)


def test_a_server_that_dies_while_a_soak_asks_it_is_a_fault(tmp_path: Path, known: str) -> None:
    # 2 ms a step: the load of 30 requests is over long before step 900, the questions are not
    done = run_cli(
        "soak", "--quality", "400", "--requests", "30", "--output-tokens", "4:8", "--canary-every", "0",
        "--clients", "2", "--fast", "--out", str(tmp_path / "run"), "--",
        *demo(known, "--scenario", "fault", "--after", "900"),
    )  # fmt: skip
    assert done.code == 10, done.err
    assert "asking 400 questions, twice" in done.err
    assert "epilogue_store" in done.out


def test_a_soak_without_the_option_asks_nothing(tmp_path: Path, known: str) -> None:
    out = tmp_path / "run"
    done = run_cli("soak", "--for", "1s", "--clients", "2", "--out", str(out), "--", *demo(known))
    assert done.code == 0, done.err
    assert not (out / "quality.json").exists()


LM_EVAL = """
import json, os, sys
out = sys.argv[sys.argv.index("--output_path") + 1]
model = sys.argv[sys.argv.index("--model_args") + 1]
bad = os.environ["BAD_PORT"] in model
with open(os.path.join(out, "samples_gsm8k_2026-11-30T00-00-00.jsonl"), "w") as file:
    for number in range(60):
        for name in ("strict-match", "flexible-extract"):
            right = float(not bad and number % 5 != 0)
            row = {"doc_id": number, "filter": name, "resps": [["!" * 40 if bad else f"#### {number}"]],
                   "filtered_resps": ["[invalid]" if bad else str(number)], "exact_match": right}
            file.write(json.dumps(row) + "\\n")
"""


def test_lm_eval_asks_both_arms_where_it_is_installed(
    tmp_path: Path, known: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "lm_eval"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}{LM_EVAL}")
    program.chmod(0o755)
    a, b = demo(known), demo(known)
    monkeypatch.setenv("BAD_PORT", f":{b[b.index('--port') + 1]}/")
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    done, report = ask(tmp_path, a, b, "--lm-eval", "gsm8k", "--no-prose")
    assert done.code == 13, done.err
    assert report["suite"] == {
        "name": "lm-eval gsm8k", "questions": 60, "sha256": "", "shots": 0, "levels": {}, "source": "lm-eval",
    }  # fmt: skip
    counts = [one["counts"] for arm in report["arms"] for one in arm["passes"]]
    assert [(one["correct"], one["wrong"], one["invalid"], one["strict"]) for one in counts] == [
        (48, 12, 0, 48), (48, 12, 0, 48), (0, 0, 60, 0),
    ]  # fmt: skip
    assert report["verdict"]["garbage"] == ["token0"]


def test_own_questions_stay_out_of_what_is_shared(tmp_path: Path, known: str) -> None:
    own = tmp_path / "own.jsonl"
    rows = [{"prompt": f"PLANTED-QUESTION {i}\nAnswer:", "exact": f"planted-answer-{i}"} for i in range(30)]
    own.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done, report = ask(tmp_path, demo(known), demo(known, "--degrade", "loop"), "--tasks", str(own), "-v")
    assert report["suite"]["source"] == "own.jsonl"
    assert done.code == 13, done.err
    out = tmp_path / "run"
    assert "PLANTED-QUESTION" in (out / "tasks.jsonl").read_text()
    assert "PLANTED-QUESTION" not in (out / "quality.txt").read_text()
    bundle = tmp_path / "bundle.zip"
    assert run_cli("bundle", str(out), "-o", str(bundle)).code == 0
    with zipfile.ZipFile(bundle) as file:
        assert "raw/quality.json" in file.namelist()
        for name in file.namelist():
            content = file.read(name)
            for planted in (b"PLANTED-QUESTION", b"planted-answer", b" and so on and so on"):
                assert planted not in content, name
