from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab.errors import CrashlabError, UnreadableInput, UsageError
from crashlab.signatures.environment import derive, normal_key, parse_options, parse_text, read_file
from tests.unit.signatures.material import DATA, env


def _values(facts: object) -> dict[str, str]:
    assert isinstance(facts, dict)
    return {key: fact.value for key, fact in facts.items()}


def test_key_value_pairs_keep_their_source() -> None:
    facts = parse_options(["cudnn=9.19.0.56", "torch=2.11.0+cu130"])
    assert facts["cudnn"] == ("9.19.0.56", "--env")
    assert facts["torch_cuda"].value == "13.0"
    assert facts["torch_cuda"].source == "from torch's version (--env)"


def test_vllm_collect_env_output() -> None:
    facts = parse_options([str(DATA / "collect_env.txt")])
    values = _values(facts)
    assert values["gpu"] == "NVIDIA GeForce RTX 5090"
    assert values["arch"] == "sm_120"
    assert values["driver"] == "595.58.03"
    assert values["torch"] == "2.9.1+cu128"
    assert values["torch_cuda"] == "12.8"
    assert values["cuda_toolkit"] == "12.6.85"
    assert values["cudnn"] == "9.10.2"
    assert values["vllm"] == "0.15.0"
    assert values["flashinfer"] == "0.6.1"
    assert values["nccl"] == "2.27.5"
    assert values["torch_cuda_arch_list"] == "7.0 7.5 8.0"
    assert "clang_version" not in values
    assert facts["torch"].source == "collect_env.txt"


def test_pip_freeze_output() -> None:
    values = _values(read_file(str(DATA / "pip_freeze.txt")))
    assert values["cudnn"] == "9.19.0.56"
    assert values["flashinfer"] == "0.6.13"
    assert values["nccl"] == "2.28.9"
    assert values["vllm"] == "0.25.1"
    assert "local" not in values


def test_nvidia_smi_and_nvcc() -> None:
    values = _values(read_file(str(DATA / "nvidia_smi.txt")))
    assert values == {"driver": "580.142", "cuda_driver": "13.0"}
    nvcc = "Cuda compilation tools, release 12.8, V12.8.93"
    assert _values(parse_text(nvcc, "f"))["cuda_toolkit"] == "12.8.93"


def test_json_forms(tmp_path: Path) -> None:
    flat = {"cuDNN version": 91900, "cuda_graph": True, "nested": {"a": 1}, "empty": ""}
    facts = parse_text(json.dumps(flat), "f.json")
    assert facts["cudnn"] == ("9.19.0", "f.json")
    assert facts["cuda_graph"].value == "true"
    assert "nested" not in facts
    report = {"environment": {"driver": {"value": "580.159", "source": "dump"}, "x": {"value": None}}}
    facts = parse_text(json.dumps(report), "report.json")
    assert facts == {"driver": ("580.159", "dump")}


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("nvidia-cudnn-cu13", "cudnn"),
        ("cuDNN version", "cudnn"),
        ("flashinfer-python", "flashinfer"),
        ("CUDA used to build PyTorch", "torch_cuda"),
        ("PYTORCH_CUDA_ALLOC_CONF", "pytorch_cuda_alloc_conf"),
        ("nvidia-nvshmem-cu12", "nvshmem"),
        ("sgl-deep-gemm", "sgl_deep_gemm"),
    ],
)
def test_names_are_normalised(name: str, key: str) -> None:
    assert normal_key(name) == key


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("cudnn=91900", "9.19.0"),
        ("cudnn=8907", "8.9.7"),
        ("nccl=22703", "2.27.3"),
        ("cuda_driver=13000", "13.0"),
        ("cudnn=12", "12"),
        ("gpu=GPU 0: NVIDIA H200 (UUID: GPU-1)", "NVIDIA H200"),
    ],
)
def test_encoded_numbers_are_undone(text: str, value: str) -> None:
    facts = parse_options([text])
    assert facts[text.split("=")[0]].value == value


@pytest.mark.parametrize(
    ("gpu", "arch"),
    [
        ("NVIDIA H200", "sm_90"),
        ("NVIDIA GH200 480GB", "sm_90"),
        ("NVIDIA B200", "sm_100"),
        ("NVIDIA GB300", "sm_103"),
        ("NVIDIA GB10", "sm_121"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "sm_120"),
        ("NVIDIA A100-SXM4-80GB", "sm_80"),
        ("NVIDIA L40S", "sm_89"),
        ("NVIDIA RTX A6000", "sm_86"),
        ("Tesla T4", "sm_75"),
    ],
)
def test_the_architecture_follows_from_the_products_name(gpu: str, arch: str) -> None:
    assert derive(env(gpu=gpu))["arch"].value == arch


def test_an_unknown_product_has_no_architecture() -> None:
    assert "arch" not in derive(env(gpu="Some Future Card"))


def test_what_is_said_directly_is_not_derived() -> None:
    facts = derive(env(gpu="NVIDIA H200", arch="sm_90a", torch="2.11.0+cu130", torch_cuda="13.1"))
    assert facts["arch"].value == "sm_90a"
    assert facts["torch_cuda"].value == "13.1"


def test_a_later_option_wins(tmp_path: Path) -> None:
    path = tmp_path / "env.txt"
    path.write_text('export CUDNN_VERSION="9.10.2"\n')
    assert parse_options([str(path)])["cudnn"].value == "9.10.2"
    assert parse_options([str(path), "cudnn=9.24"])["cudnn"].value == "9.24"


def test_a_missing_file_and_broken_json_teach(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="neither key=value nor a readable file") as caught:
        parse_options(["no/such/file"])
    assert "collect-env" in (caught.value.hint or "")
    with pytest.raises(UsageError):
        parse_options(["nul\0byte"])
    broken = tmp_path / "x.json"
    broken.write_text("{ no")
    with pytest.raises(UnreadableInput):
        read_file(str(broken))
    big = tmp_path / "big"
    big.write_bytes(b"a" * ((4 << 20) + 2))
    with pytest.raises(UnreadableInput, match="larger than"):
        read_file(str(big))


@given(st.text(max_size=300))
def test_only_crashlab_errors_leave_the_text_reader(content: str) -> None:
    try:
        facts = parse_text(content, "f")
    except CrashlabError:
        return
    assert all(fact.value and fact.source == "f" for fact in facts.values())


@given(st.text(max_size=120))
def test_only_crashlab_errors_leave_the_option_reader(value: str) -> None:
    with contextlib.suppress(CrashlabError):
        parse_options([value])
