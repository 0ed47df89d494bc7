"""Plans: what their text means, and what is said about a broken one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab.errors import CrashlabError, UsageError
from crashlab.sweep.estimate import dry_run
from crashlab.sweep.facts import Setting
from crashlab.sweep.job import check_parallel, job_of, ways_of
from crashlab.sweep.plan import Plan, read_plan
from crashlab.sweep.probe import Server
from crashlab.sweep.schedule import Task
from crashlab.sweep.slurm import script, tasks

SERVER = Server(None, None)


def read(text: str, files: Mapping[str, str] | None = None, **more: object) -> Plan:
    known = files or {}
    return read_plan(
        text, "my/plan.toml", command=["vllm", "serve", "M"], read_file=known.__getitem__, **more
    )  # type: ignore[arg-type]


def job(plan: Plan, arm: str, number: int = 0, exposure: float | None = None, replay: str | None = None):  # type: ignore[no-untyped-def]
    task = Task(arm, number, exposure, "")
    return job_of(plan, ways_of(plan, SERVER), task, run=1, folder="/f", cwd="/", token="t", replay=replay)


def test_one_factor_gives_an_arm_for_each_value_over_the_baseline() -> None:
    plan = read('[baseline]\nkv-cache-dtype = "fp8"\n[levers]\nmoe-backend = ["marlin", "triton"]\n')
    assert [arm.name for arm in plan.arms] == ["baseline", "moe-backend=marlin", "moe-backend=triton"]
    assert plan.arms[0].is_baseline
    assert plan.arms[1].levers == (Setting("kv-cache-dtype", "fp8"), Setting("moe-backend", "marlin"))


def test_an_empty_list_takes_what_the_lever_suggests() -> None:
    plan = read("[levers]\ncudagraph-mode = []\n")
    assert plan.arms[1].levers == (Setting("cudagraph-mode", "NONE"),)


def test_true_and_false_turn_switches_and_unset_is_a_value() -> None:
    plan = read('[baseline]\ndeep-gemm = 1\n[levers]\nprefix-caching = [false]\ndeep-gemm = ["unset"]\n')
    assert plan.arms[1].levers[-1] == Setting("prefix-caching", "off")
    assert plan.arms[2].name == "deep-gemm=unset"
    assert job(plan, "deep-gemm=unset").variables == {"VLLM_USE_DEEP_GEMM": None}
    assert job(plan, "baseline").variables == {"VLLM_USE_DEEP_GEMM": "1"}


def test_a_matrix_has_every_combination_with_the_baselines_own_value() -> None:
    plan = read(
        'kind = "matrix"\n[baseline]\nmoe-backend = "triton"\n'
        '[levers]\ncudagraph-mode = ["NONE"]\nmoe-backend = ["marlin"]\n'
    )
    assert [arm.name for arm in plan.arms] == [
        "baseline",
        "moe-backend=marlin",
        "cudagraph-mode=NONE",
        "cudagraph-mode=NONE moe-backend=marlin",
    ]


def test_a_list_names_its_arms() -> None:
    plan = read(
        'kind = "list"\n[[arm]]\nname = "both"\nset = { cudagraph-mode = "NONE", moe-backend = "x" }\n'
    )
    assert plan.arms[1].name == "both"
    assert len(plan.arms[1].levers) == 2


@pytest.mark.parametrize(("bad", "baseline"), [("last", "cudnn=3"), ("first", "cudnn=1")])
def test_a_bisections_baseline_is_the_end_that_faults(bad: str, baseline: str) -> None:
    plan = read(f'kind = "bisect"\n[bisect]\nlever = "cudnn"\nvalues = ["1", "2", "3"]\nbad = "{bad}"\n')
    assert plan.arms[0].name == baseline
    assert plan.arms[0].is_baseline
    assert {arm.name for arm in plan.arms[1:]} == {"cudnn=1", "cudnn=2", "cudnn=3"} - {baseline}


def test_excluded_levers_cannot_be_turned_in_one_arm() -> None:
    with pytest.raises(UsageError, match="at once") as error:
        read('kind = "matrix"\n[levers]\nenforce-eager = [true]\ncudagraph-mode = ["NONE"]\n')
    assert "unset" in (error.value.hint or "")


def test_vllm_bench_sweeps_parameter_file_makes_arms() -> None:
    rows = [
        {"max_num_seqs": 32, "_benchmark_name": "small"},
        {"compilation_config.cudagraph_mode": "NONE", "enable_prefix_caching": False},
        {"gpu-memory-utilization": 0.8, "compilation_config.pass_config.fuse": True},
    ]
    plan = read('params = "serve.json"\n', {"serve.json": json.dumps(rows)})
    assert plan.arms[1].name == "small"
    assert plan.arms[1].levers == (Setting("max-num-seqs", "32"),)
    assert {setting.lever for setting in plan.arms[2].levers} == {"cudagraph-mode", "prefix-caching"}
    argv = job(plan, plan.arms[3].name).argv
    assert argv[-3:] == (
        "--gpu-memory-utilization",
        "0.8",
        "--compilation-config.pass_config.fuse=true",
    )
    named = {"a": {"max_num_seqs": 1}, "b": {"max_num_seqs": 2}}
    assert [arm.name for arm in read('params = "x"\n', {"x": json.dumps(named)}).arms] == [
        "baseline",
        "a",
        "b",
    ]


@pytest.mark.parametrize("text", ["{", "[]", "[1]", '"x"', "[{}]", '{"a": 1}'])
def test_a_broken_parameter_file_is_an_error(text: str) -> None:
    with pytest.raises(UsageError) as error:
        read('params = "x"\n', {"x": text})
    assert error.value.hint


def test_the_load_and_the_budget_become_options_of_soak() -> None:
    plan = read(
        "seed = 5\n[levers]\nmoe-backend = ['marlin']\n[load]\nshape = 'mixed'\nfast = true\nignore-eos = false\n"
        "canary-every = 0\n[budget]\nrun-for = '10m'\n"
    )
    options = job(plan, "baseline", 2, 1000.2).options
    assert options == (
        "--shape", "mixed", "--fast", "--canary-every", "0",
        "--steps", "1001", "--for", "600.000s", "--seed", "7",
    )  # fmt: skip


def test_every_arm_sees_the_same_requests_in_its_nth_run() -> None:
    plan = read("seed = 5\n[levers]\nmoe-backend = ['marlin']\n")
    assert job(plan, "baseline", 3).options[-1] == job(plan, "moe-backend=marlin", 3).options[-1] == "8"
    replayed = job(plan, "moe-backend=marlin", 0, None, "/f/requests.jsonl").options
    assert replayed[-2:] == ("--replay", "/f/requests.jsonl")


def test_the_first_baselines_requests_can_be_replayed() -> None:
    assert read("[levers]\nmoe-backend = ['marlin']\n[load]\nreplay = 'baseline'\n").replay_first


def test_hours_as_the_unit_limit_the_time() -> None:
    plan = read("[levers]\nmoe-backend = ['marlin']\n[budget]\nunit = 'hours'\nrun-for = '2h'\n")
    assert "--steps" not in job(plan, "baseline", 0, 0.5).options
    assert "1800.000s" in job(plan, "baseline", 0, 0.5).options


def test_a_library_version_is_prepared_in_an_overlay_of_its_own() -> None:
    plan = read("[levers]\ncudnn = ['9.23.1', '9.24.0']\n")
    one, two = job(plan, "cudnn=9.23.1"), job(plan, "cudnn=9.24.0")
    assert one.overlay != two.overlay
    assert one.values == {"cudnn": "9.23.1"}
    assert "{overlay}" in one.prepare[0]
    assert job(plan, "baseline").overlay is None
    given = read("[levers]\ncudnn = ['9.23.1']\n", prepare=[["build", "{overlay}", "{value}"]])
    assert job(given, "cudnn=9.23.1").prepare == (("build", "{overlay}", "{value}"),)


_EIGHT = "['1', '2', '3', '4', '5', '6', '7', '8']"
_MANY = "".join(
    f"{name} = {_EIGHT}\n" for name in ("max-num-seqs", "tensor-parallel", "moe-backend", "nccl-algo")
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "levers"),
        ("[levers]\n", "levers"),
        ("x = [", "no TOML"),
        ("[levers]\nno-such-lever = ['1']\n", "No lever is called"),
        ("[levers]\ncudagraph-mode = ['SOMETIMES']\n", "cannot be 'SOMETIMES'"),
        ("[levers]\nmoe-backend = [['a']]\n", "a string, a finite number"),
        ("[levers]\nmoe-backend = ['a']\n[budgets]\nlevel = 0.1\n", "'budgets' is no key"),
        ("[levers]\nmoe-backend = ['a']\n[budget]\nlevel = 0.7\n", "below 0.5"),
        ("[levers]\nmoe-backend = ['a']\n[budget]\nunit = 'years'\n", "'unit'"),
        ("[levers]\nmoe-backend = ['a']\n[budget]\nrun-for = 'soon'\n", "[budget]: 'run-for' must be a time"),
        ("[levers]\nmoe-backend = ['a']\n[load]\nshapes = 'x'\n", "'shapes' is no key"),
        ("[levers]\nmoe-backend = ['a']\n[load]\nsteps = 5\n", "'steps' is no key"),
        ("[levers]\nmoe-backend = ['a']\n[load]\nlinger = 5\n", "'linger' is no key"),
        ("mode = 'run'\n[levers]\nmoe-backend = ['a']\n[load]\nclients = 5\n", "'clients' is no key"),
        ("[levers]\nmoe-backend = ['a']\n[load]\ntemperature = nan\n", "'temperature' must be"),
        ("[levers]\nmoe-backend = ['a']\n[budget]\ntotal-for = 0\n", "[budget]: 'total-for' must be a time"),
        (f"[levers]\nmoe-backend = ['a']\n[budget]\nrun-for = '{'9' * 400}'\n", "[budget]: 'run-for'"),
        ("[levers]\nmoe-backend = ['a', 'a']\n", "two arms"),
        ("kind = 'all'\n[levers]\nmoe-backend = ['a']\n", "'kind'"),
        ("mode = 'run'\n[budget]\nunit = 'steps'\n[levers]\nmoe-backend = ['a']\n", "'hours'"),
        ("kind = 'list'\n", "at least one [[arm]]"),
        ("kind = 'list'\n[[arm]]\nname = 'x'\n", "'set'"),
        ("kind = 'bisect'\n", "'lever'"),
        ("kind = 'bisect'\n[bisect]\nlever = 'cudnn'\nvalues = ['1']\n", "at least two"),
        ("[levers]\nmoe-backend = ['a']\n[[arm]]\nset = { moe-backend = 'b' }\n", "'arm'"),
        ("[levers]\nnccl-algo = [1]\ntarget = 'x'\n", "No lever is called 'target'"),
        ("target = 'x'\n[levers]\nnccl-algo = ['1']\n", "'target'"),
        ("schema = 'other/2'\n[levers]\nnccl-algo = ['1']\n", "'schema'"),
        ("[levers]\nnccl-algo = ['1']\n[remote]\ngpus = -1\n", "'gpus'"),
        ("[levers]\nnccl-algo = ['1']\n[remote]\ngpus = nan\n", "'gpus'"),
        ("[levers]\nnccl-algo = ['1']\n[remote]\ngpus = inf\n", "'gpus'"),
        (f"kind = 'matrix'\n[levers]\n{_MANY}", "more than 500"),
    ],
)  # fmt: skip
def test_a_broken_plan_is_an_error_that_names_the_place_and_the_next_step(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)) as error:
        read(text)
    assert error.value.hint
    assert error.value.exit_code == 2


def test_a_plan_without_a_command_says_where_it_goes() -> None:
    with pytest.raises(UsageError, match="nothing is to be run"):
        read_plan("[levers]\nmoe-backend = ['a']\n", "p.toml")


_VALUES = st.recursive(
    st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=True) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
_KEYS = st.sampled_from(
    ["name", "kind", "command", "seed", "mode", "target", "key", "levers", "baseline", "budget", "load", "server",
     "environment", "prepare", "remote", "bisect", "arm", "lever", "params", "schema", "other"]
)  # fmt: skip


@given(st.dictionaries(_KEYS, _VALUES, max_size=5))
def test_only_our_errors_leave_the_reader(values: dict[str, object]) -> None:
    from crashlab.sweep.plan import read as module
    from crashlab.sweep.tomltext import Table

    real = module.parse
    module.parse = lambda text, where: Table(values, where)
    try:
        read_plan("", "p.toml", command=["x"], read_file=lambda name: "[]")
    except CrashlabError:
        pass
    finally:
        module.parse = real


@given(st.text(max_size=300))
def test_any_text_is_a_plan_or_one_of_our_errors(text: str) -> None:
    try:
        read(text, {})
    except CrashlabError:
        pass
    except KeyError:
        assert "params" in text


def test_the_hash_changes_with_the_text_and_with_the_command() -> None:
    text = "[levers]\nmoe-backend = ['a']\n"
    same = read(text)
    assert same.sha256 == read(text).sha256
    assert same.sha256 != read(f"{text}#\n").sha256
    assert same.sha256 != read_plan(text, "p", command=["other"]).sha256
    assert same.sha256 != read(text, prepare=[["make"]]).sha256
    one, two = (read('params = "x"\n', {"x": f'[{{"seed": {n}}}]'}).sha256 for n in (1, 2))
    assert one != two


def test_a_dry_run_shows_what_is_set_how_it_is_seen_and_what_it_costs() -> None:
    plan = read("[levers]\nmoe-backend = ['marlin']\ndeep-gemm = ['0']\nlaunch-blocking = ['1']\n")
    text = "\n".join(dry_run(plan, Server(None, "0.25.1")))
    assert "vllm serve M --moe-backend marlin" in text
    assert "VLLM_USE_DEEP_GEMM=0 vllm serve M" in text
    assert "shown by log" in text
    assert "absence of faults proves little" in text
    assert "times the mean exposure between two faults" in text


def test_several_servers_need_ports_of_their_own() -> None:
    plan = read("[levers]\nmoe-backend = ['a']\n")
    check_parallel(plan, 1)
    with pytest.raises(UsageError, match="ports of their own"):
        check_parallel(plan, 2)
    check_parallel(plan._replace(command=("s", "--port", "{port}")), 2)


def test_an_array_for_slurm_has_fixed_rounds_with_the_baseline_in_turn() -> None:
    plan = read(
        "[levers]\nmoe-backend = ['a', 'b']\n[budget]\nrun-for = '90m'\n"
        "[remote]\nrounds = 2\nsbatch = ['--partition=gpu']\nsetup = ['module load cuda']\nmemory-gb = 64\n"
    )
    rows = tasks(plan)
    assert [row.arm for row in rows][:4] == ["baseline", "moe-backend=a", "baseline", "moe-backend=b"]
    assert len({(row.arm, row.number) for row in rows}) == len(rows)
    text = script(plan, "plan.toml", "out dir")
    assert f"#SBATCH --array=1-{len(rows)}" in text
    assert "#SBATCH --partition=gpu" in text
    assert "#SBATCH --time=02:30:00" in text
    assert "#SBATCH --mem=65536M" in text
    assert "crashlab sweep --task \"$SLURM_ARRAY_TASK_ID\" --out 'out dir' plan.toml -- vllm serve M" in text
    assert "module load cuda" in text


def test_a_bisection_cannot_be_an_array() -> None:
    plan = read('kind = "bisect"\n[bisect]\nlever = "cudnn"\nvalues = ["1", "2"]\n')
    with pytest.raises(UsageError, match="bisection"):
        tasks(plan)


def test_an_unknown_key_of_the_load_is_told_the_known_ones_and_where_the_budget_stands() -> None:
    with pytest.raises(UsageError) as error:
        read_plan("[levers]\nmoe-backend = ['a']\n[load]\nfoo = 1\n", "p.toml", command=["x"])
    assert "canary-every, clients, dump" in (error.value.hint or "")
    with pytest.raises(UsageError) as error:
        read_plan("[levers]\nmoe-backend = ['a']\n[load]\nfor = '2h'\n", "p.toml", command=["x"])
    assert "run-for in [budget]" in (error.value.hint or "")
