"""What a log says about the environment and the run: versions, backends, CUDA graphs, Xids.

Serving frameworks print what they really chose, which beats what was asked for. Lines are lower
case here (see :class:`~crashlab.signatures.logtext.LogText`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from crashlab.facts import EnvFact
from crashlab.signatures.environment import normal_key
from crashlab.signatures.logtext import LogText

SOURCE = "log"


class LogFacts(NamedTuple):
    """Environment facts, settings of the run, and Xid numbers (None: no kernel log lines)."""

    env: Mapping[str, EnvFact]
    run: Mapping[str, EnvFact]
    xids: tuple[int, ...] | None


# (literal that must be in the line, expression, key): versions and hardware.
_ENV = (
    ("llm engine (v", r"llm engine \(v([\w.+-]{1,60})\)", "vllm"),
    ("vllm api server version", r"vllm api server version ([\w.+-]{1,60})", "vllm"),
    ("flashinfer_autotune_cache/", r"flashinfer_autotune_cache/([\d.a-z]{3,30})/", "flashinfer"),
    ("nccl version", r"nccl version ([\d.]{3,20})", "nccl"),
    ("driver version:", r"driver version: {0,4}([\d.]{3,20})", "driver"),
    ("cuda version:", r"cuda version: {0,4}([\d.]{3,10})", "cuda_driver"),
    ("pytorch version", r"pytorch version {0,20}: {0,4}([\w.+-]{1,60})", "torch"),
    ("torch==", r"\btorch==([\w.+-]{1,60})", "torch"),
    ("nvidia-cudnn-cu", r"nvidia-cudnn-cu\d\d==([\d.]{3,20})", "cudnn"),
    ("flashinfer-python==", r"flashinfer-python==([\w.+-]{1,60})", "flashinfer"),
    ("compute capability", r"compute capability (\d{1,2}\.\d)", "arch"),
    ("release", r"cuda compilation tools, release ([\d.]{3,10})", "cuda_toolkit"),
)
_RUN = (
    ("enforce_eager=", r"enforce_eager=(true|false)", "enforce_eager"),
    ("tensor_parallel_size=", r"tensor_parallel_size=(\d{1,4})", "tensor_parallel_size"),
    ("data_parallel_size=", r"data_parallel_size=(\d{1,4})", "data_parallel_size"),
    ("kv_cache_dtype=", r"kv_cache_dtype='?([\w.]{1,30})", "kv_cache_dtype"),
    ("quantization=", r"[ (]quantization='?([\w.-]{1,40})", "quantization"),
    ("speculative_config=", r"speculative_config=(?:none|.{0,20}method='?([\w-]{1,30}))", "spec"),
    ("attention backend", r"using ([\w.-]{2,40}) attention backend", "attention_backend"),
    ("moe backend", r"using '?([\w.-]{2,40})'? .{0,40}moe backend", "moe_backend"),
    ("linearkernel", r"\b(\w{1,60}linearkernel)\b", "linear_kernel"),
    ("model runner", r"using (v[12]) model runner", "model_runner"),
)
_GRAPHS_ON = ("capturing cuda graphs", "graph capturing finished", "capture cuda graph end")
_GRAPHS_OFF = ("skipping cuda graph capture", "cudagraph_mode.none", "disable_cuda_graph=true")
_XID = r"nvrm: xid \((?:pci:)?[0-9a-f:.]{4,30}\)[^,]{0,40}: (\d{1,4}),"
_FLAG = r"--?(?:no-)?[a-zA-Z][\w.-]{0,60}"
_SHORT = {
    "tp": "tensor_parallel_size",
    "pp": "pipeline_parallel_size",
    "tensor_parallel": "tensor_parallel_size",
    "cc_cudagraph_mode": "cudagraph_mode",
    "speculative_config": "spec",
    "speculative_algorithm": "spec",
    "fp4_gemm_backend": "linear_backend",
    "moe_runner_backend": "moe_backend",
}


def read(log: LogText) -> LogFacts:
    """All facts that ``log`` states about itself; the first mention counts, the last for graphs."""
    env = _first(log, _ENV)
    run = _first(log, _RUN)
    graphs = _graphs(log, run)
    if graphs is not None:
        run["cuda_graph"] = EnvFact(str(graphs).lower(), SOURCE)
    codes = [int(found[1]) for line in log.lines_with("nvrm: xid") if (found := re.search(_XID, line))]
    return LogFacts(env, run, tuple(dict.fromkeys(codes)) or None)


def _first(log: LogText, table: tuple[tuple[str, str, str], ...]) -> dict[str, EnvFact]:
    facts: dict[str, EnvFact] = {}
    for literal, pattern, key in table:
        if key in facts:
            continue
        for line in log.lines_with(literal):
            if found := re.search(pattern, line):
                value = found[1] or "none"
                if key == "linear_kernel" and "using" not in line and "selected" not in line:
                    continue
                facts[key] = EnvFact(value, SOURCE)
                break
    return facts


def _graphs(log: LogText, run: Mapping[str, EnvFact]) -> bool | None:
    if "enforce_eager" in run and run["enforce_eager"].value == "true":
        return False
    if any(True for literal in _GRAPHS_OFF for _ in log.lines_with(literal)):
        return False
    if any(True for literal in _GRAPHS_ON for _ in log.lines_with(literal)):
        return True
    return None


def from_argv(argv: Sequence[str]) -> dict[str, EnvFact]:
    """Settings from a command line: ``--kv-cache-dtype nvfp4``, ``-tp=2``, ``--enforce-eager``."""
    facts: dict[str, EnvFact] = {}
    for position, word in enumerate(argv[:500]):
        name, equals, value = word.partition("=")
        if not re.fullmatch(_FLAG, name):
            continue
        following = argv[position + 1] if position + 1 < len(argv) else ""
        if not equals:
            value = following if following and not following.startswith("-") else "true"
        key = normal_key(name.lstrip("-"))
        facts[_SHORT.get(key, key)] = EnvFact(value[:300], "command line")
    mode = facts["cudagraph_mode"].value.lower() if "cudagraph_mode" in facts else ""
    if "enforce_eager" in facts or "disable_cuda_graph" in facts or mode == "none":
        facts["cuda_graph"] = EnvFact("false", "command line")
    return facts
