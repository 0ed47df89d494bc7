from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab.signatures import logfacts
from crashlab.signatures.logtext import LogText
from tests.unit.signatures.material import DATA


def _read(*lines: str) -> logfacts.LogFacts:
    return logfacts.read(LogText(lines))


def test_a_real_vllm_log_tells_version_backend_and_graphs() -> None:
    found = logfacts.read(LogText((DATA / "vllm_nodump.log").read_text().splitlines()))
    assert found.env["vllm"].value == "0.25.1"
    assert found.env["vllm"].source == "log"
    assert found.env["flashinfer"].value == "0.6.13"
    assert found.run["attention_backend"].value == "flash_attn"
    assert found.run["tensor_parallel_size"].value == "1"
    assert found.run["kv_cache_dtype"].value == "auto"
    assert found.run["enforce_eager"].value == "false"
    assert found.run["cuda_graph"].value == "false"  # "Skipping CUDA graph capture"
    assert found.xids is None


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("(EngineCore pid=1) INFO gpu_model_runner.py Capturing CUDA graphs (decode, FULL): 100%", "true"),
        ("config: model='m', enforce_eager=True, kv_cache_dtype=auto", "false"),
        ("INFO Graph capturing finished in 11 secs, took 0.35 GiB", "true"),
        ("nothing of the kind", None),
    ],
)
def test_whether_cuda_graphs_were_on(line: str, expected: str | None) -> None:
    fact = _read(line).run.get("cuda_graph")
    assert (fact.value if fact else None) == expected


def test_xid_lines_of_both_driver_generations() -> None:
    found = _read(
        "[ 12.3] NVRM: Xid (PCI:0000:01:00): 31, pid=4, name=python3, Ch 00000008, intr 00000000.",
        "NVRM: Xid (0000:41:00): 13, Graphics SM Warp Exception on (GPC 7, TPC 7, SM 0): Out Of Range Address",
        "NVRM: Xid (PCI:0000:01:00): 31, pid=4, name=python3, channel 0x0000003e, intr 00000000.",
    )
    assert found.xids == (31, 13)


def test_selected_kernels_and_backends() -> None:
    found = _read(
        "INFO Using FlashInferCutlassNvFp4LinearKernel for NVFP4 GEMM",
        "INFO Using 'MARLIN' NvFp4 MoE backend out of potential backends: ['MARLIN'].",
        "INFO NCCL version 2.28.9+cuda13.0",
    )
    assert found.run["linear_kernel"].value == "flashinfercutlassnvfp4linearkernel"
    assert found.run["moe_backend"].value == "marlin"
    assert found.env["nccl"].value == "2.28.9"


def test_a_kernel_that_is_only_mentioned_was_not_selected() -> None:
    assert "linear_kernel" not in _read("DEBUG considered MarlinLinearKernel").run


def test_settings_of_a_command_line() -> None:
    argv = [
        "vllm",
        "serve",
        "m",
        "--kv-cache-dtype",
        "nvfp4",
        "-tp=2",
        "--enforce-eager",
        "--linear-backend=marlin",
    ]
    found = {key: fact.value for key, fact in logfacts.from_argv(argv).items()}
    assert found["kv_cache_dtype"] == "nvfp4"
    assert found["tensor_parallel_size"] == "2"
    assert found["linear_backend"] == "marlin"
    assert found["enforce_eager"] == "true"
    assert found["cuda_graph"] == "false"
    assert logfacts.from_argv(["-cc.cudagraph_mode=NONE"])["cuda_graph"].value == "false"
    assert "cuda_graph" not in logfacts.from_argv(["--model", "x"])


@given(st.lists(st.text(max_size=100), max_size=10))
def test_any_log_can_be_read(lines: list[str]) -> None:
    logfacts.read(LogText(lines))
    logfacts.from_argv(lines)
