"""The environment plan, its confounds and its printed forms."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.capture.confounds import DEFEATS, find_confounds
from crashlab.capture.forms import FORMS
from crashlab.capture.plan import MAX_PATH, plan_environment
from crashlab.errors import UsageError

RUN = "/evidence/run"


def values(**options: object) -> dict[str, str]:
    return plan_environment({}, RUN, **options).apply({})  # type: ignore[arg-type]


def test_a_light_dump_leaves_all_memory_out_and_never_skips_the_abort() -> None:
    flags = values()["CUDA_COREDUMP_GENERATION_FLAGS"].split(",")
    assert "skip_global_memory" in flags
    assert "skip_shared_memory" in flags
    assert not [
        name
        for detail in ("light", "shared", "full")
        for name in values(dump=detail).values()
        if "skip_abort" in name
    ]


def test_shared_keeps_shared_and_local_memory_and_full_keeps_global() -> None:
    shared = values(dump="shared")["CUDA_COREDUMP_GENERATION_FLAGS"]
    assert "skip_shared_memory" not in shared
    assert "skip_local_memory" not in shared
    assert "skip_global_memory" in shared
    assert "memory" not in values(dump="full")["CUDA_COREDUMP_GENERATION_FLAGS"]


def test_the_light_weight_switch_that_580_turns_into_full_dumps_is_never_set() -> None:
    assert "CUDA_ENABLE_LIGHTWEIGHT_COREDUMP" not in values()


def test_hang_pipes_are_left_out_on_request() -> None:
    assert "CUDA_COREDUMP_PIPE" in values()
    assert "CUDA_COREDUMP_PIPE" not in values(hang_dumps=False)
    assert plan_environment({}, RUN, hang_dumps=False).pipe_pattern is None


def test_what_the_user_has_set_is_kept_and_said() -> None:
    plan = plan_environment({"CUDA_COREDUMP_FILE": "/mine/%p"}, RUN)
    (setting,) = [one for one in plan.settings if one.name == "CUDA_COREDUMP_FILE"]
    assert (setting.value, setting.origin, plan.dump_pattern) == ("/mine/%p", "user", "/mine/%p")


def test_with_everything_switched_off_by_the_user_no_place_is_watched() -> None:
    off = {"CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "0", "CUDA_ENABLE_USER_TRIGGERED_COREDUMP": "0"}
    plan = plan_environment(off, RUN)
    assert (plan.dump_pattern, plan.pipe_pattern) == (None, None)
    assert [c.severity for c in plan.confounds if c.name == "CUDA_ENABLE_COREDUMP_ON_EXCEPTION"] == [DEFEATS]


def test_a_path_that_the_driver_would_cut_is_refused() -> None:
    with pytest.raises(UsageError, match=str(MAX_PATH)):
        plan_environment({}, "/" + "x" * MAX_PATH)


def test_an_unknown_detail_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown dump detail"):
        plan_environment({}, RUN, dump="everything")


@pytest.mark.parametrize(
    ("name", "value", "severity"),
    [
        ("CUDA_LAUNCH_BLOCKING", "1", "distorts"),
        ("TORCH_USE_CUDA_DSA", "1", "distorts"),
        ("CUDA_COREDUMP_GENERATION_FLAGS", "skip_abort,skip_global_memory", "defeats"),
        ("CUDA_DEVICE_WAITS_ON_EXCEPTION", "1", "defeats"),
        ("CUDA_COREDUMP_SHOW_PROGRESS", "0", "distorts"),
    ],
)
def test_settings_that_spoil_the_evidence_are_found(name: str, value: str, severity: str) -> None:
    assert [(one.name, one.severity) for one in find_confounds({name: value})] == [(name, severity)]


def test_a_setting_that_is_switched_off_is_no_confound() -> None:
    assert find_confounds({"CUDA_LAUNCH_BLOCKING": "0", "TORCH_USE_CUDA_DSA": ""}) == ()


paths = st.text(
    st.characters(blacklist_characters="\0/", blacklist_categories=("Cs", "Cc")), min_size=1, max_size=30
)


@settings(deadline=None)
@given(paths)
def test_the_shell_form_survives_any_folder_name(name: str) -> None:
    plan = plan_environment({}, f"/tmp/{name}")
    lines = [line for line in FORMS["shell"](plan).splitlines() if line.startswith("export ")]
    got = dict(shlex.split(line)[1].split("=", 1) for line in lines)
    assert got == {one.name: one.value for one in plan.settings}


def test_a_real_shell_reads_the_shell_form(tmp_path: Path) -> None:
    plan = plan_environment({}, str(tmp_path / "it's $HOME `here`"))
    script = FORMS["shell"](plan) + 'printf %s "$CUDA_COREDUMP_FILE"'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == plan.dump_pattern
    assert (tmp_path / "it's $HOME `here`" / "cores").is_dir()


def test_kubernetes_does_not_expand_what_looks_like_its_variables() -> None:
    text = FORMS["kubernetes"](plan_environment({}, "/e/$(X)"))
    value = next(line for line in text.splitlines() if "nvcudmp" in line).partition("value: ")[2]
    assert json.loads(value).startswith("/e/$$(X)/cores/")


def test_systemd_specifiers_are_doubled() -> None:
    text = FORMS["systemd"](plan_environment({}, RUN))
    assert 'Environment="CUDA_COREDUMP_FILE=/evidence/run/cores/%%h.%%p.%%t.nvcudmp"' in text


def test_docker_options_are_one_a_line() -> None:
    lines = FORMS["docker"](plan_environment({}, RUN)).splitlines()
    assert all(line.startswith("  -e CUDA_") or "PYTHONFAULTHANDLER" in line for line in lines)
    assert all(line.endswith("\\") for line in lines)
