"""``[load]`` of a plan: what the runs would refuse is refused before any run, by plan file and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from crashlab.cli.sweepload import check_load
from crashlab.errors import UsageError
from crashlab.sweep.plan import LOAD_OPTIONS, RUN_OPTIONS, Plan, read_plan
from tests.support.command import run_cli

LEVERS = "[levers]\nmoe-backend = ['marlin']\n"


def _plan(load: str, mode: str = "soak") -> Plan:
    return read_plan(f"mode = '{mode}'\n{LEVERS}[load]\n{load}\n", "my.toml", command=["server"])


@pytest.mark.parametrize(
    ("load", "says"),
    [
        ("clients = 'many'", "clients = 'many'"),
        ("clients = -1", "clients = '-1'"),
        ("temperature = 'nan'", "temperature = 'nan'"),
        ("temperature = -1.0", "temperature = '-1.0'"),
        ("output-tokens = '9:2'", "no range of token counts"),
        ("input-tokens = '0'", "input-tokens = '0'"),
        ("shape = 'foo'", "'decode-heavy'"),
        ("stall-after = 'x'", "no duration"),
        ("ready-within = 'x'", "no duration"),
        ("prefill-limit = 'x'", "no duration"),
        ("extra = '{bad'", "extra = '{bad'"),
        ("extra = '[1]'", "JSON object"),
        ("load-cmd = 'a \"'", "load-cmd = "),
        ("prompts = 'nofile'", "prompts = 'nofile'"),
        ("replay = 'nofile'", "cannot be replayed"),
        ("canary-every = 0.5", "canary-every = '0.5'"),
        ("dump = 'huge'", "'light'"),
        ("ignore-eos = 'yes'", "true or false"),
        ("fast = 1", "true or false"),
    ],
)
def test_what_a_soak_refuses_is_refused_with_the_plan(load: str, says: str, tmp_path: Path) -> None:
    plan = _plan(load)
    with pytest.raises(UsageError) as error:
        check_load(plan, "my.toml", str(tmp_path))
    assert str(error.value).startswith(f"my.toml: [load]: {load.split()[0]} = ")
    assert says in str(error.value)
    assert error.value.hint


@pytest.mark.parametrize("load", ["linger = 'soon'", "grace = 'x'", "dump = 'x'", "stall-after = 'x'"])
def test_with_mode_run_the_options_of_run_count(load: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^my.toml: \[load\]: ") as error:
        check_load(_plan(load, "run"), "my.toml", str(tmp_path))
    assert error.value.hint


def test_good_values_pass(tmp_path: Path) -> None:
    (tmp_path / "prompts.txt").write_text("some words to draw from")
    load = (
        "shape = 'decode-heavy'\nclients = 32\ninput-tokens = '2k:3k'\noutput-tokens = 256\nignore-eos = true\n"
        "temperature = 0.7\nprompts = 'prompts.txt'\nload-cmd = 'bench {url}'\nmodel = 'm'\nextra = '{\"a\": 1}'\n"
        "stall-after = 90\nprefill-limit = '5m'\nready-within = '1h'\ncanary-every = 0\ndump = 'full'\n"
        "no-hang-dumps = false\nfast = true\nurl = 'http://127.0.0.1:{port}'\nreplay = 'baseline'"
    )
    plan = _plan(load)
    assert {*plan.load, "replay", "linger", "grace"} == set(LOAD_OPTIONS)
    check_load(plan, "my.toml", str(tmp_path))
    load = "dump = 'full'\nno-hang-dumps = true\nfast = true\nstall-after = '5m'\nlinger = 'never'\ngrace = 3"
    plan = _plan(load, "run")
    assert set(plan.load) == set(RUN_OPTIONS)
    check_load(plan, "my.toml", str(tmp_path))


def test_files_are_looked_for_where_the_runs_are_made(tmp_path: Path) -> None:
    plan = _plan("prompts = 'only-there.txt'")
    check_load(plan, "my.toml", str(tmp_path), files=False)
    (tmp_path / "only-there.txt").write_text("words")
    check_load(plan, "my.toml", str(tmp_path))


def test_a_dry_run_does_not_call_a_broken_load_good(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(f"{LEVERS}[load]\nclients = 'many'\n")
    for mode in ("--dry-run", "--slurm"):
        done = run_cli("sweep", str(path), mode, "--", "server")
        assert (done.code, "clients = 'many'" in done.err) == (2, True), done.err
