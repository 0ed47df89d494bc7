"""The catalogue of levers, how they are set, and what shows that they took."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab.errors import CrashlabError, UsageError
from crashlab.sweep.catalogue import as_rows, bundled, find, levers_of, merged
from crashlab.sweep.facts import Effective
from crashlab.sweep.lever import SWITCH, VARIABLE, Lever, Show, Way
from crashlab.sweep.probe import Server, ask, options_in, stem_of, version_in, way_for, within
from crashlab.sweep.proof import Witness, observed, text_lines, verify
from crashlab.sweep.setting import Launch, apply, environment_of, filled, present
from crashlab.sweep.tomltext import parse

DATA = Path(__file__).resolve().parents[2] / "data" / "sweep"
HELP = (DATA / "vllm-0.32-options.txt").read_text()
LOG = (DATA / "vllm-0.25-startup.log").read_bytes()
LAUNCH = Launch(("vllm", "serve", "M", "--port", "1", "--moe-backend", "auto", "-cc.cudagraph_mode=FULL"), {})


def lever(name: str) -> Lever:
    return bundled()[name]


def test_the_catalogue_holds_the_whole_table_of_the_design() -> None:
    assert set(bundled()) >= {
        "enforce-eager", "cudagraph-mode", "compile-mode", "optimization-level", "tensor-parallel",
        "expert-parallel", "all2all-backend", "attention-backend", "moe-backend", "linear-backend", "deep-gemm",
        "moe-deep-gemm", "deep-gemm-e8m0", "kv-cache-dtype", "prefix-caching", "chunked-prefill",
        "max-num-batched-tokens", "max-num-seqs", "speculative-config", "async-scheduling", "custom-all-reduce",
        "nccl-p2p", "flashinfer-sampler", "flashinfer-autotune", "compile-cache", "hw-agnostic",
        "batch-invariant", "nan-count", "cudnn", "cublas", "flashinfer", "torch", "driver", "launch-blocking",
        "allocator",
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(bundled()))
def test_every_lever_can_be_set_and_something_can_show_that_it_took(name: str) -> None:
    one = lever(name)
    assert one.ways
    assert one.shows
    for excluded in one.excludes:
        assert excluded in bundled()
        assert name in bundled()[excluded].excludes, f"{excluded} must exclude {name}, too"
    assert set(one.suggest) <= set(one.values or one.suggest)
    for show in one.shows:
        if show.read is not None:
            # a repeat inside a repeat must be bounded, so that a long hostile line costs nothing
            assert not re.search(r"[+*]\)[+*]", show.read)


@pytest.mark.parametrize(
    "name",
    sorted(n for n, one in bundled().items() if any(w.name.startswith("-") for w in one.ways)),
)
def test_every_option_of_the_catalogue_is_in_the_help_of_a_real_vllm(name: str) -> None:
    way = way_for(lever(name), Server(options_in(HELP), "0.32.0"))
    assert way.name.startswith("-")
    names = way.probe or (way.name,)
    assert any(option in options_in(HELP) for option in names)


def test_one_lever_is_set_as_each_release_spells_it() -> None:
    attention = lever("attention-backend")
    assert way_for(attention, Server(None, "0.14.1")).name == "VLLM_ATTENTION_BACKEND"
    assert way_for(attention, Server(None, "0.15.0")).name == "--attention-backend"
    assert way_for(attention, Server(frozenset({"--port"}), "0.11.0")).name == "VLLM_ATTENTION_BACKEND"
    assert way_for(attention, Server(frozenset({"--attention-backend"}), None)).name == "--attention-backend"


def test_a_lever_that_the_server_does_not_know_is_an_error_that_names_it() -> None:
    with pytest.raises(UsageError, match="moe-backend") as error:
        way_for(lever("moe-backend"), Server(frozenset({"--port"}), "0.12.0"))
    assert "[[lever]]" in (error.value.hint or "")


def test_a_lever_is_found_by_its_option_and_a_wrong_name_gets_the_nearest() -> None:
    assert find(bundled(), "--moe-backend").id == "moe-backend"
    assert find(bundled(), "VLLM_USE_DEEP_GEMM").id == "deep-gemm"
    with pytest.raises(UsageError, match="cuda-graph-mode") as error:
        find(bundled(), "cuda-graph-mode")
    assert "cudagraph-mode" in (error.value.hint or "")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("moe-backend", "marlin", "--port 1 --moe-backend marlin -cc.cudagraph_mode=FULL"),
        ("moe-backend", None, "--port 1 -cc.cudagraph_mode=FULL"),
        ("cudagraph-mode", "NONE", "--port 1 --moe-backend auto -cc.cudagraph_mode=NONE"),
        ("kv-cache-dtype", "fp8", "--port 1 --moe-backend auto -cc.cudagraph_mode=FULL --kv-cache-dtype fp8"),
        (
            "prefix-caching",
            "off",
            "--port 1 --moe-backend auto -cc.cudagraph_mode=FULL --no-enable-prefix-caching",
        ),
        ("prefix-caching", None, "--port 1 --moe-backend auto -cc.cudagraph_mode=FULL"),
    ],
)
def test_an_option_is_replaced_where_it_stands(name: str, value: str | None, expected: str) -> None:
    one = lever(name)
    assert " ".join(apply(LAUNCH, one, one.ways[0], value).argv) == f"vllm serve M {expected}"


def test_a_switch_replaces_its_opposite() -> None:
    one = lever("prefix-caching")
    launch = Launch(("s", "--no-enable-prefix-caching", "x"), {})
    assert apply(launch, one, one.ways[0], "on").argv == ("s", "x", "--enable-prefix-caching")


def test_unset_is_a_value_of_its_own() -> None:
    one = lever("deep-gemm")
    unset = apply(LAUNCH, one, one.ways[0], None)
    zero = apply(LAUNCH, one, one.ways[0], "0")
    base = {"VLLM_USE_DEEP_GEMM": "1", "HOME": "/h"}
    assert environment_of(base, unset.variables) == {"HOME": "/h"}
    assert environment_of(base, zero.variables)["VLLM_USE_DEEP_GEMM"] == "0"
    assert not present(unset, base, one.ways[0])
    assert present(zero, {}, one.ways[0])


def test_a_value_that_the_lever_does_not_have_is_refused() -> None:
    one = lever("cudagraph-mode")
    with pytest.raises(UsageError, match="SOMETIMES"):
        apply(LAUNCH, one, one.ways[0], "SOMETIMES")


def test_a_number_after_an_option_is_its_value_and_not_another_option() -> None:
    one = Lever("x", "x", "own", (Way("flag", "--x"),))
    assert apply(Launch(("s", "--x", "-1", "y"), {}), one, one.ways[0], None).argv == ("s", "y")
    assert apply(Launch(("s", "--x", "--y"), {}), one, one.ways[0], None).argv == ("s", "--y")


def test_only_known_marks_are_filled_in_and_json_stays() -> None:
    assert filled(["--p={port}", '{"a": 1}'], {"port": "8"}) == ("--p=8", '{"a": 1}')


# --- what shows that a lever took: the recorded start-up of vLLM 0.25.1


def took(name: str, value: str | None, witness: Witness, way: int = 0, given: bool = False) -> Effective:
    one = lever(name)
    return verify(one, one.ways[way], value, given, witness)


RECORDED = Witness(text_lines(LOG))


@pytest.mark.parametrize(
    ("name", "value", "effective", "right"),
    [
        ("cudagraph-mode", "FULL_AND_PIECEWISE", "NONE", False),
        ("cudagraph-mode", "NONE", "NONE", True),
        ("enforce-eager", "off", "False", True),
        ("enforce-eager", "on", "False", False),
        ("attention-backend", "flash_attn", "FLASH_ATTN", True),
        ("attention-backend", "TRITON_ATTN", "FLASH_ATTN", False),
        ("kv-cache-dtype", "auto", "auto", True),
        ("prefix-caching", "on", "True", True),
        ("tensor-parallel", "2", "1", False),
        ("custom-all-reduce", "on", "False", True),
        ("max-num-seqs", "32", "32", True),
        ("speculative-config", '{"method": "ngram"}', "None", False),
        ("compile-mode", "0", "0", True),
        ("vllm", "0.25.1", "0.25.1", True),
    ],
)
def test_the_effective_value_is_read_from_a_real_log(
    name: str, value: str, effective: str, right: bool
) -> None:
    found = took(name, value, RECORDED)
    assert (found.value, found.took) == (effective, right)


def test_a_variable_that_vllm_does_not_know_did_not_take() -> None:
    line = "(APIServer pid=1) WARNING [interface.py:1] Unknown vLLM environment variable detected: "
    witness = Witness((f"{line}VLLM_NVFP4_GEMM_BACKEND",))
    found = took("linear-backend", "marlin", witness, way=1)
    assert found.took is False
    assert "Unknown vLLM environment variable" in (found.source or "")
    longer = Witness((f"{line}VLLM_NVFP4_GEMM_BACKEND_2",))
    assert took("linear-backend", "marlin", longer, way=1).took is None


@pytest.mark.parametrize(
    ("name", "value", "line", "right"),
    [
        ("linear-backend", "flashinfer_cutlass", "Using FlashInferCutlassNvFp4LinearKernel for NVFP4 GEMM", True),
        ("linear-backend", "marlin", "Using FlashInferCutlassNvFp4LinearKernel for NVFP4 GEMM", False),
        ("moe-backend", "triton", "Using TRITON Unquantized MoE backend out of potential backends: []", True),
        ("moe-backend", "marlin", "Using 'FLASHINFER_TRTLLM' NvFp4 MoE backend out of", False),
        ("moe-deep-gemm", "0", "Using DEEPGEMM Fp8 MoE backend out of", False),
        ("cudagraph-mode", "FULL", "FULL is not supported with X backend; setting cudagraph_mode=PIECEWISE", False),
        ("cudagraph-mode", "NONE",
         "Cudagraph mode FULL is not compatible with compilation mode 0. Overriding to NONE.", True),
        ("async-scheduling", "off", "Asynchronous scheduling is enabled.", False),
        ("deep-gemm-e8m0", "1", "DeepGEMM E8M0 disabled on current configuration.", False),
        ("flashinfer-autotune", "off", "Skipping FlashInfer autotune because it is disabled.", True),
        ("nccl-algo", "Ring", "NCCL INFO NCCL_ALGO set by environment to Ring", True),
    ],
)  # fmt: skip
def test_lines_of_other_releases_are_read(name: str, value: str, line: str, right: bool) -> None:
    assert took(name, value, Witness((line,))).took is right


def test_silence_is_not_taking() -> None:
    assert took("deep-gemm-e8m0", "0", RECORDED) == Effective("deep-gemm-e8m0", None, None, None)


def test_server_info_shows_a_variable() -> None:
    witness = Witness(server_info={"vllm_env": {"VLLM_USE_DEEP_GEMM": False}})
    assert took("deep-gemm", "0", witness).took is True
    assert took("deep-gemm", "1", witness).took is False


def test_a_later_override_beats_the_configuration() -> None:
    lines = (*RECORDED.lines, "WARNING Overriding cudagraph_mode from FULL_AND_PIECEWISE to PIECEWISE")
    assert took("cudagraph-mode", "FULL_AND_PIECEWISE", Witness(lines)).value == "PIECEWISE"


def test_a_loaded_library_decides_and_a_part_of_its_version_is_enough() -> None:
    witness = Witness(libraries={"cudnn": "9.23.1.2"})
    assert took("cudnn", "9.23.1", witness).took is True
    assert took("cudnn", "9.23", witness).took is True
    assert took("cudnn", "9.2", witness).took is False


def test_the_environment_is_the_weakest_witness_and_says_so() -> None:
    found = took("launch-blocking", "1", Witness(environment={"CUDA_LAUNCH_BLOCKING": "1"}))
    assert found.took is True
    assert "does not say" in (found.source or "")


def test_a_lever_left_unset_took_when_nothing_sets_it() -> None:
    assert took("attention-backend", None, RECORDED).took is True
    assert took("attention-backend", None, RECORDED, given=True).took is False


def test_a_lever_that_the_arm_does_not_name_is_only_read() -> None:
    one = lever("attention-backend")
    assert observed(one, one.ways[0], RECORDED) == Effective(
        "attention-backend", "FLASH_ATTN", "log: Using FLASH_ATTN attention backend", None
    )


@given(st.binary(max_size=400), st.sampled_from(sorted(bundled())), st.sampled_from(["0", "on", "x", None]))
def test_any_log_can_be_read(raw: bytes, name: str, value: str | None) -> None:
    one = lever(name)
    for way in one.ways:
        assert verify(one, way, value, False, Witness(text_lines(raw))).lever == name


# --- what the server says of itself


@pytest.mark.parametrize(
    ("command", "stem"),
    [
        (["vllm", "serve", "M", "--x"], ["vllm", "serve"]),
        (["/usr/bin/python3.12", "-m", "pkg.mod", "--x"], ["/usr/bin/python3.12", "-m", "pkg.mod"]),
        (["python", "server.py", "--x"], ["python", "server.py"]),
        (["./llama-server", "-m", "model.gguf"], ["./llama-server", "-m", "model.gguf"]),
        (["./server", "--x"], ["./server"]),
    ],
)
def test_help_is_asked_without_loading_a_model(command: list[str], stem: list[str]) -> None:
    assert stem_of(command) == stem


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("0.32.0+cpu\n", "0.32.0"),
        ("Triton 3.1 is installed\nvllm 0.25.1\n", "0.25.1"),
        ("no version", None),
        ("", None),
    ],
)
def test_a_version_is_read_from_the_last_line_that_has_one(text: str, version: str | None) -> None:
    assert version_in(text) == version


def test_version_ranges_include_both_ends() -> None:
    way = Way(VARIABLE, "A", since="0.12", until="0.14")
    assert [within(v, way) for v in ("0.11.2", "0.12.0", "0.14.3", "0.15.0", None)] == [
        False, True, True, False, True,
    ]  # fmt: skip


def test_a_command_that_cannot_be_started_is_an_error_with_a_next_step() -> None:
    with pytest.raises(UsageError, match="cannot be started") as error:
        ask(["/nowhere/server"], {})
    assert error.value.hint


# --- levers of a plan


def own(text: str) -> list[Lever]:
    return levers_of(parse(text, "plan").tables("lever"))


def test_a_user_defines_a_lever_in_the_same_form() -> None:
    (one,) = own(
        '[[lever]]\nid = "mine"\nvalues = ["on", "off"]\n[[lever.way]]\nswitch = "--mine"\noff = "--no-mine"\n'
        '[[lever.show]]\nsource = "log"\nread = "mine=(\\\\w+)"\nmeans = { on = "1" }\n'
    )
    assert one.ways[0] == Way(SWITCH, "--mine", off="--no-mine")
    assert one.shows[0] == Show("log", read="mine=(\\w+)", means={"on": "1"})
    assert merged([one])["mine"] is one


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[lever]]\ntitle = 'x'\n", "'id'"),
        ("[[lever]]\nid = 'x'\n", "'way'"),
        ("[[lever]]\nid = 'x'\n[[lever.way]]\nflag = 'x'\n", "begins with '-'"),
        ("[[lever]]\nid = 'x'\n[[lever.way]]\nflag = '--x'\nvariable = 'X'\n", "exactly one"),
        ("[[lever]]\nid = 'x'\n[[lever.way]]\nvariable = 'a b'\n", "environment variable"),
        ("[[lever]]\nid = 'x'\n[[lever.way]]\nflag = '--x'\n[[lever.show]]\nsource = 'tea'\n", "'source'"),
        ("[[lever]]\nid = 'x'\n[[lever.way]]\nflag = '--x'\n[[lever.show]]\nsource = 'log'\n", "'read'"),
        ("[[lever]]\nid = 'x'\n[[lever.way]]\nflag = '--x'\n[[lever.show]]\nsource = 'log'\nread = '('\n", "regular"),
        ("[[lever]]\nid = 'x'\n[[lever.way]]\nflag = '--x'\n[[lever.show]]\nsource = 'log'\nread = 'x'\n", "group"),
        ("[[lever]]\nid = 'x'\nvalue = ['1']\n[[lever.way]]\nflag = '--x'\n", "'value' is no key"),
        ("[[lever]]\nid = 'x'\n[[lever.way]]\nflag = '--x'\nsince = 'now'\n", "version"),
        ("[[lever]]\nid = 'x'\nvalues = ['1']\n[[lever.way]]\nswitch = '--x'\n", "switch"),
        ("[[lever]]\nid = 'x'\n[[lever.way]]\nflag = '--x'\n" * 2, "twice"),
    ],
)  # fmt: skip
def test_a_broken_lever_is_an_error_that_names_the_key(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)) as error:
        own(text)
    assert error.value.hint


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
                        ["id", "way", "show", "flag", "switch", "source", "read", "values", "means", "x"]),
                        inner, max_size=4), max_leaves=12))  # fmt: skip
def test_only_our_errors_leave_the_reader_of_levers(value: object) -> None:
    from crashlab.sweep.tomltext import Table

    with contextlib.suppress(CrashlabError):
        levers_of(Table({"lever": value}, "plan").tables("lever"))


def test_rows_for_documents_hold_every_lever() -> None:
    rows = as_rows(bundled().values())
    assert [row["id"] for row in rows] == list(bundled())
    assert all(row["set"] and row["shown_by"] for row in rows)
