"""One run for real: a process of its own around the demo server, and what comes back of it."""

from __future__ import annotations

import http.server
import json
import sys
import threading
from pathlib import Path

import pytest

from crashlab.demo import planted
from crashlab.demo.options import parse
from crashlab.errors import ToolFailed
from crashlab.sweep.execute import Stop, kept_environment, run_job
from crashlab.sweep.facts import CLEAN, FAULT, INCONCLUSIVE, NOT_APPLIED, ArmRun
from crashlab.sweep.job import Job, job_of, ways_of
from crashlab.sweep.outcome import INTERRUPTED
from crashlab.sweep.plan import Plan, read_plan
from crashlab.sweep.probe import Server
from crashlab.sweep.schedule import Task
from tests.support.demosweep import PLAN, demo_command
from tests.unit.sweep.test_runner import OPTIONS


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in [name for name in os.environ if name.startswith(("CUDA_", "VLLM_", "CRASHLAB_SWEEP"))]:
        monkeypatch.delenv(name)


def made(plan: Plan, folder: Path, arm: str, exposure: float | None = 300, server: Server = OPTIONS) -> Job:
    return job_of(
        plan, ways_of(plan, server), Task(arm, 0, exposure, ""), run=1, folder=str(folder), cwd=str(folder),
        token=f"test-{folder.name}",
    )  # fmt: skip


def demo(folder: Path, arm: str, bug_every: int = 200, exposure: float = 5000) -> Job:
    return made(read_plan(PLAN, "plan.toml", command=demo_command(bug_every)), folder, arm, exposure)


def test_a_fault_is_found_with_its_key_and_the_levers_in_effect(tmp_path: Path) -> None:
    # Long enough for two readings of its metrics: only then steps are known.
    job = demo(tmp_path, "attention-backend=TRITON_ATTN", 3000, 1e6)._replace(server_info=True)
    found = run_job(job, None, "local")
    assert found.outcome == FAULT
    assert "epilogue_store" in (found.key or "")
    assert found.exposure.steps is not None
    assert {e.lever: (e.value, e.took) for e in found.effective}["attention-backend"] == ("TRITON_ATTN", True)
    assert (tmp_path / job.rundir / "report.json").is_file()


def test_an_arm_whose_lever_did_not_take_is_ended_early(tmp_path: Path) -> None:
    job = demo(tmp_path, "linear-backend=marlin", bug_every=10_000_000, exposure=1e9)
    found = run_job(job)
    assert found.outcome == NOT_APPLIED
    assert (found.exposure.hours or 0) < 20 / 3600
    assert kept_environment(job) == {"VLLM_NVFP4_GEMM_BACKEND": "marlin"}
    assert kept_environment(job._replace(run=99)) == {}


def test_a_run_that_is_asked_to_stop_is_made_again(tmp_path: Path) -> None:
    job = demo(tmp_path, "baseline", bug_every=10_000_000, exposure=1e9)
    found = run_job(job, Stop(lambda: int((tmp_path / job.rundir / "requests.jsonl").exists())))
    assert (found.outcome, found.note) == (INCONCLUSIVE, INTERRUPTED)


def program(folder: Path, *words: str, run_for: str = "30s") -> ArmRun:
    text = f"mode = 'run'\n[levers]\nlaunch-blocking = ['1']\n[budget]\nrun-for = '{run_for}'\n[load]\nfast = true\n"
    plan = read_plan(text, "plan.toml", command=[sys.executable, "-c", *words])
    return run_job(made(plan, folder, "launch-blocking=1", None, Server(None, None)))


def test_a_program_without_load_can_be_an_arm(tmp_path: Path) -> None:
    found = program(
        tmp_path, "import os, time; time.sleep(0.3); assert os.environ['CUDA_LAUNCH_BLOCKING'] == '1'"
    )
    assert found.outcome == CLEAN
    assert found.exposure.steps is None
    assert found.exposure.hours is not None
    assert found.exposure.hours > 0.2 / 3600


def test_a_program_is_ended_when_its_time_is_up(tmp_path: Path) -> None:
    found = program(tmp_path, "import time; time.sleep(600)", run_for="2s")
    assert found.outcome == CLEAN
    assert found.exposure.hours is not None
    assert found.exposure.hours < 60 / 3600


def test_a_supervisor_that_dies_leaves_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho gone wrong >&2\nexit 9\n")
    fake.chmod(0o755)
    monkeypatch.setattr("crashlab.sweep.execute.sys.executable", str(fake))
    with pytest.raises(ToolFailed, match="gone wrong"):
        run_job(demo(tmp_path, "baseline"))


def test_the_servers_own_configuration_is_asked_for_and_kept(tmp_path: Path) -> None:
    from crashlab.sweep.execute import _Asker

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"vllm_env": {"asked": self.path}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.handle_request, daemon=True).start()
    (tmp_path / "side").mkdir()
    asker = _Asker(demo(tmp_path, "baseline"), ("server", "--port", str(server.server_port)))
    asker.step()
    asker._next = 0.0
    asker.step()
    asker.step()
    server.server_close()
    kept = json.loads((tmp_path / "side" / "0001.server_info.json").read_text())
    assert kept == {"vllm_env": {"asked": "/server_info?config_format=json"}}
    nobody = _Asker(demo(tmp_path, "baseline"), ("server", "--port", "1"))
    nobody._next = 0.0
    nobody.step()


# --- the planted bug


@pytest.mark.parametrize(
    ("arguments", "faults"),
    [
        ([], True),
        (["--enforce-eager"], False),
        (["-cc.cudagraph_mode=NONE"], False),
        (["-cc.cudagraph_mode", "PIECEWISE"], True),
        (["--moe-backend", "marlin"], False),
        (["--moe-backend", "flashinfer_cutlass"], True),
        (
            ["--attention-backend", "TRITON_ATTN", "--kv-cache-dtype", "fp8", "--no-enable-prefix-caching"],
            True,
        ),
        (["--bug-every", "0"], False),
    ],
)
def test_the_planted_bug_needs_graphs_and_the_default_moe_backend(arguments: list[str], faults: bool) -> None:
    options = parse(["--bug-every", "50", *arguments])
    assert planted.chance(options._asdict()) == (0.02 if faults else 0.0)


def test_the_demo_server_says_what_its_levers_led_to_and_which_variables_it_ignores() -> None:
    options = parse(["--bug-every", "50", "--enforce-eager", "--moe-backend", "marlin"])
    recorded = ["a line", "Using FLASH_ATTN attention backend"]
    lines = planted.startup(recorded, options, {"VLLM_X": "1", "VLLM_LOGGING_LEVEL": "INFO", "HOME": "/"}, {})
    text = "\n".join(lines)
    assert text.count("attention backend") == 1
    assert "detected: VLLM_X" in text
    assert "VLLM_LOGGING_LEVEL" not in text
    assert "enforce_eager=True" in text
    assert "CUDAGraphMode.NONE" in text
    assert "'MARLIN' NvFp4 MoE backend" in text


OVERLAID = """
kind = "list"
mode = "run"
[load]
fast = true
[[lever]]
id = "toy"
prepare = [["{python}", "-c", "import pathlib, sys; pathlib.Path(sys.argv[1], 'toy.py').write_text(sys.argv[2])",
            "{overlay}", "version = '{value}'"]]
[[lever.way]]
overlay = true
[[lever.show]]
source = "log"
read = 'toy (\\w+)'
[[arm]]
name = "new"
set = { toy = "two" }
"""


def test_a_library_version_comes_from_the_arms_own_overlay(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "toy.py").write_text("version = 'one'")
    code = f"import sys; sys.path.append({str(tmp_path / 'base')!r}); import toy; print('toy', toy.version)"
    plan = read_plan(OVERLAID, "plan.toml", command=[sys.executable, "-c", code])
    new = made(plan, tmp_path, "new", None, Server(None, None))
    found = run_job(new)
    assert (found.outcome, found.effective[0].value, found.effective[0].took) == (CLEAN, "two", True)
    base = run_job(
        made(plan, tmp_path, "baseline", None, Server(None, None))._replace(run=2, rundir="arms/b")
    )
    assert (base.outcome, base.effective[0].value) == (CLEAN, "one")


def test_an_overlay_that_does_not_win_is_not_applied(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "toy.py").write_text("version = 'one'")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'base')!r}); import toy; print('toy', toy.version)"
    )
    plan = read_plan(OVERLAID, "plan.toml", command=[sys.executable, "-c", code])
    found = run_job(made(plan, tmp_path, "new", None, Server(None, None)))
    assert (found.outcome, found.effective[0].value, found.effective[0].took) == (NOT_APPLIED, "one", False)
