"""What a second stranger stumbled over: each message says what happened and the next step."""

from __future__ import annotations

import gzip
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from crashlab.cli.main import cli
from crashlab.errors import CrashlabError, MissingTool, UsageError
from tests.support import corpus

ROOT = Path(__file__).resolve().parents[3]
QUALITY = ROOT / "tests" / "golden" / "quality" / "token0.json"


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, list(arguments), prog_name="crashlab")
    if isinstance(result.exception, CrashlabError):
        raise result.exception
    return result.return_value if isinstance(result.return_value, int) else result.exit_code, result.output


def code_of(*arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "crashlab", *arguments]
    return subprocess.run(
        argv,
        check=False,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
    )


def test_a_view_that_was_left_out_is_asked_for() -> None:
    done = code_of("inspect", str(corpus.path("oob_load")))
    assert done.returncode == 2
    assert "Which view? One of kernels, devices" in done.stderr


def test_a_number_that_is_none_is_no_python_message() -> None:
    done = code_of("inspect", str(corpus.path("oob_load")), "sass", "--pc", "zzz")
    assert done.returncode == 2
    assert "'zzz' is no number" in done.stderr
    assert "int()" not in done.stderr


def test_an_nvdisasm_that_is_not_there_is_told_at_once() -> None:
    with pytest.raises(MissingTool, match="--nvdisasm"):
        invoke("analyze", str(corpus.path("oob_load")), "--nvdisasm", "/no/such/program")


def test_the_folder_of_a_quality_run_is_shown_by_report(tmp_path: Path) -> None:
    (tmp_path / "quality.json").write_text(QUALITY.read_text())
    with pytest.raises(UsageError) as caught:
        invoke("analyze", str(tmp_path))
    assert "crashlab report" in (caught.value.hint or "")


def test_an_unreadable_dump_beside_good_ones_is_told_with_q_too() -> None:
    done = code_of("analyze", "-q", "--fast", str(corpus.path("oob_load")), str(ROOT / "nofile"))
    assert done.returncode == 0
    assert "nofile: Unreadable" in done.stderr


def test_two_reports_of_which_one_is_none_exit_with_3(tmp_path: Path) -> None:
    done = code_of("report", str(corpus.path("oob_load")), str(tmp_path / "nofile"), "--debugger", "never")
    assert done.returncode == 3


def test_a_suffix_that_nothing_here_writes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="pdf"):
        invoke("report", str(QUALITY), "-o", str(tmp_path / "r.pdf"))


def test_a_dash_is_standard_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke("report", str(QUALITY), "-o", "-")[1]
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_was_cut_off_does_not_pass_for_a_clean_one(tmp_path: Path) -> None:
    log = tmp_path / "server.log.gz"
    log.write_bytes(gzip.compress(b"".join(b"line %d\n" % n for n in range(20_000)))[:2000])
    assert "cut short or damaged" in " ".join(invoke("analyze", "--log", str(log))[1].split())


def test_a_program_that_fails_by_itself_leaves_a_word_and_a_next_step(tmp_path: Path) -> None:
    done = code_of("run", "--out", str(tmp_path / "r"), "--", sys.executable, "-c", "raise SystemExit(3)")
    assert done.returncode == 3
    assert "exit code 3, and nothing tells of the GPU" in done.stderr


def test_a_killed_program_is_told_where_to_look_for_the_killer(tmp_path: Path) -> None:
    program = "import os; os.kill(os.getpid(), 9)"
    done = code_of("run", "--out", str(tmp_path / "r"), "--", sys.executable, "-c", program)
    assert done.returncode == 16
    assert "dmesg" in done.stderr


@pytest.mark.parametrize("magic", ["\\x7fELF", "\\x1f\\x8b\\x08", "\\x28\\xb5\\x2f\\xfd"])
def test_output_that_begins_like_a_packed_file_is_still_output(tmp_path: Path, magic: str) -> None:
    said = "CUDA error: an illegal memory access was encountered"
    program = f"import os; os.write(1, b'{magic}\\n{said}\\n'); os.abort()"
    done = code_of("run", "--out", str(tmp_path / "r"), "--", sys.executable, "-c", program)
    assert done.returncode == 11
    assert "analysis failed" not in done.stderr


@pytest.mark.parametrize("delay", [0.0, 0.1, 0.3])
def test_an_early_ctrl_c_prints_no_traceback(tmp_path: Path, delay: float) -> None:
    content = corpus.raw("oob_load")
    for number in range(24):
        (tmp_path / f"{number}.core").write_bytes(content + bytes([number]))
    loading = (
        "import sys\ntry:\n print('up', flush=True)\n from crashlab.cli import main\n main()\n"
        "except KeyboardInterrupt:\n sys.exit(130)"
    )
    argv = [sys.executable, "-c", loading, "analyze", "--fast", str(tmp_path)]
    started = subprocess.Popen(
        argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert started.stdout is not None
    started.stdout.readline()  # before that, Python itself is still loading
    time.sleep(delay)
    started.send_signal(signal.SIGINT)
    _, said = started.communicate(timeout=60)
    assert started.returncode in (0, 130)
    assert "Traceback" not in said
