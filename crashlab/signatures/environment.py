"""Environment facts by normalised key: GPU, driver, the three CUDA versions, library versions.

``--env`` takes ``key=value`` or a file: key=value lines, JSON, the output of ``vllm collect-env``,
``nvidia-smi`` or ``nvcc --version``, or ``pip freeze``. Every fact keeps its source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from crashlab.errors import UnreadableInput, UsageError
from crashlab.facts import EnvFact

MAX_FILE = 4 << 20
MAX_FACTS = 5000
_MAX_VALUE = 300

_ALIASES: Mapping[str, str] = {
    "pytorch": "torch",
    "pytorch_version": "torch",
    "torch_version": "torch",
    "cuda_used_to_build_pytorch": "torch_cuda",
    "torch_version_cuda": "torch_cuda",
    "cuda_runtime_version": "cuda_toolkit",
    "cuda_home_version": "cuda_toolkit",
    "nvcc": "cuda_toolkit",
    "toolkit": "cuda_toolkit",
    "cuda": "cuda_toolkit",
    "cuda_version": "cuda_driver",
    "cuda_driver_version": "cuda_driver",
    "nvidia_driver_version": "driver",
    "driver_version": "driver",
    "gpu_models_and_configuration": "gpu",
    "gpu_name": "gpu",
    "gpu_0": "gpu",
    "compute_capability": "arch",
    "sm": "arch",
    "sm_arch": "arch",
    "vllm_version": "vllm",
    "nvidia_cudnn": "cudnn",
    "cudnn_version": "cudnn",
    "flashinfer_python": "flashinfer",
    "flashinfer_version": "flashinfer",
    "flash_infer": "flashinfer",
    "sglang_version": "sglang",
    "nvidia_nccl": "nccl",
    "nccl_version": "nccl",
    "triton_version": "triton",
    "nvidia_cublas": "cublas",
    "nvidia_nvshmem": "nvshmem",
    "nvidia_cutlass_dsl": "cutlass_dsl",
    "nvidia_cutlass": "cutlass",
    "flash_attn": "flash_attention",
    "trtllm": "tensorrt_llm",
    "llamacpp": "llama_cpp",
    "llama_cpp_version": "llama_cpp",
    "ik_llama": "ik_llama_cpp",
    "enforce_eager": "enforce_eager",
}
_CUDA_SUFFIX = r"_cu\d{2}$"
_NOT_WORD = r"[^a-z0-9]+"
_FREEZE = r"(?:\[(?:pip3?|conda)\]\s{0,4})?([A-Za-z][\w.-]{0,80})==([\w.+!-]{1,80})"
_PAIR = r"([A-Za-z][\w .()-]{0,60}?)\s{0,60}[=:]\s{0,4}(\S.{0,300})"
_LIBCUDNN = r"libcudnn\.so\.(\d{1,3}\.\d{1,3}\.\d{1,3})"
_SMI = r"Driver Version: ([\d.]{3,20}) {1,40}CUDA Version: ([\d.]{3,10})"
_NVCC = r"release ([\d.]{3,10}), V([\d.]{3,20})"
_TORCH_CUDA = r"\+cu(\d{2,3})(\d)\b"

# First match wins. Compute capability by product name: NVIDIA's CUDA GPU list.
_GPUS = (
    (r"RTX PRO \d{4}|RTX 50[5-9]0|GeForce RTX 50", "sm_120"),
    (r"\bGB10\b|DGX Spark", "sm_121"),
    (r"\bG?B300\b", "sm_103"),
    (r"\bG?B[12]00\b", "sm_100"),
    (r"\bG?H(?:100|200|800|20)\b", "sm_90"),
    (r"\bL40S?\b|\bL4\b|\bL20\b|RTX 40[5-9]0|RTX [456]000 Ada", "sm_89"),
    (r"\bA(?:100|800|30)\b", "sm_80"),
    (r"\bA(?:2|10|10G|16|40)\b|RTX 30[5-9]0|RTX A\d{4}", "sm_86"),
    (r"\bT4\b|RTX 20[5-9]0", "sm_75"),
    (r"\bV100\b", "sm_70"),
)


def parse_options(values: Iterable[str]) -> dict[str, EnvFact]:
    """Facts of several ``--env`` values; a later one wins. Raises UsageError or UnreadableInput."""
    facts: dict[str, EnvFact] = {}
    for value in values:
        key, equals, rest = value.partition("=")
        if equals and re.fullmatch(r"[\w .-]{1,60}", key) and rest:
            facts[normal_key(key)] = EnvFact(_normal_value(normal_key(key), rest), "--env")
        else:
            facts.update(read_file(value))
    return derive(facts)


def read_file(path: str) -> dict[str, EnvFact]:
    """Facts of one file, whatever form it has. Raises UsageError, UnreadableInput."""
    import os

    from crashlab.inputfile import open_regular

    try:
        with open_regular(path, "environment file") as stream:
            raw = stream.read(MAX_FILE + 1)
    except (UnreadableInput, OSError) as error:
        raise UsageError(
            f"--env {path!r} is neither key=value nor a readable file ({error})",
            hint="Examples: --env cudnn=9.19.0.56, or --env FILE with the output of `vllm collect-env`.",
        ) from error
    if len(raw) > MAX_FILE:
        raise UnreadableInput(f"the environment file {path} is larger than {MAX_FILE >> 20} MiB")
    return parse_text(raw.decode("utf-8", "replace"), os.path.basename(path))


def parse_text(content: str, source: str) -> dict[str, EnvFact]:
    """Facts of JSON, key=value lines, pip freeze, collect-env, nvidia-smi and nvcc output.

    Raises UnreadableInput for JSON that is broken or not a mapping.
    """
    if content.lstrip()[:1] == "{":
        return _from_json(content, source)
    facts: dict[str, EnvFact] = {}
    for line in content.splitlines():
        text = line[:1000].strip()
        for key, value in _from_line(text) if text else ():
            if value and key not in facts and len(facts) < MAX_FACTS:
                facts[key] = EnvFact(value[:_MAX_VALUE], source)
    return facts


def _from_line(line: str) -> list[tuple[str, str]]:
    """The facts on one line of any of the text forms, normalised."""
    if found := re.search(_SMI, line, re.ASCII):
        return [("driver", found[1]), ("cuda_driver", found[2])]
    if found := re.search(_NVCC, line, re.ASCII):
        return [("cuda_toolkit", found[2])]
    if found := re.search(_LIBCUDNN, line, re.ASCII):
        return [("cudnn", found[1])]
    if found := re.fullmatch(_FREEZE, line.split(" ;")[0].split("#")[0].strip(), re.ASCII):
        key = normal_key(found[1])
        return [(key, _normal_value(key, found[2]))]
    if found := re.fullmatch(_PAIR, line.removeprefix("export "), re.ASCII):
        key = normal_key(found[1])
        value = found[2].strip().strip("\"'")
        if value.lower() in ("could not collect", "n/a", "none", "not available") or "Probably one" in value:
            return []
        return [(key, _normal_value(key, value))]
    return []


def _from_json(content: str, source: str) -> dict[str, EnvFact]:
    import json

    try:
        data: Any = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UnreadableInput(f"{source} looks like JSON and cannot be read: {error}") from error
    if isinstance(data, dict) and isinstance(data.get("environment"), dict):
        data = data["environment"]
    facts = {}
    for name, item in list(data.items())[:MAX_FACTS] if isinstance(data, dict) else ():
        origin = source
        if isinstance(item, dict):
            origin = str(item.get("source") or source)[:_MAX_VALUE]
            item = item.get("value")
        if isinstance(item, (str, int, float)) and not isinstance(item, bool) and str(item):
            key = normal_key(name)
            facts[key] = EnvFact(_normal_value(key, str(item)[:_MAX_VALUE]), origin)
        elif isinstance(item, bool):
            facts[normal_key(name)] = EnvFact(str(item).lower(), origin)
    return facts


def normal_key(name: str) -> str:
    """``nvidia-cudnn-cu13`` and ``cuDNN version`` both give ``cudnn``."""
    key = re.sub(_NOT_WORD, "_", name[:100].lower()).strip("_")
    key = re.sub(_CUDA_SUFFIX, "", key, flags=re.ASCII)
    return _ALIASES.get(key, key)


def _normal_value(key: str, value: str) -> str:
    """Undo number encodings: cuDNN 91900, NCCL 22703, CUDA 13000; and take one GPU's name."""
    value = value.strip()[:_MAX_VALUE]
    if key == "gpu":
        return value.removeprefix("GPU 0:").strip().split(" (UUID")[0]
    if not value.isascii() or not value.isdigit() or len(value) not in (4, 5, 6):
        return value
    number = int(value)
    if key == "cudnn":  # CUDNN_VERSION: major * 10000 from 9.0 on, major * 1000 before
        scale = 10_000 if number >= 90_000 else 1000
        return f"{number // scale}.{number % scale // 100}.{number % 100}"
    if key == "nccl":  # NCCL_VERSION_CODE from 2.9 on
        return f"{number // 10_000}.{number % 10_000 // 100}.{number % 100}"
    if key in ("cuda_driver", "cuda_toolkit", "torch_cuda") and number >= 9000:
        return f"{number // 1000}.{number % 1000 // 10}"
    return value


def derive(facts: Mapping[str, EnvFact]) -> dict[str, EnvFact]:
    """Add what follows from other facts: architecture from the GPU's name, torch's CUDA from ``+cu130``."""
    made = dict(facts)
    if "gpu" in made and "arch" not in made:
        for pattern, arch in _GPUS:
            if re.search(pattern, made["gpu"].value, re.IGNORECASE):
                made["arch"] = EnvFact(arch, f"from the GPU's name ({made['gpu'].source})")
                break
    if (
        "torch" in made
        and "torch_cuda" not in made
        and (found := re.search(_TORCH_CUDA, made["torch"].value, re.ASCII))
    ):
        made["torch_cuda"] = EnvFact(
            f"{found[1]}.{found[2]}", f"from torch's version ({made['torch'].source})"
        )
    return made
