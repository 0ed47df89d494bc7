"""The bug that is planted for ``crashlab sweep``: it needs two levers at once.

A step faults by chance, with the same probability each, while CUDA graphs are on and the MoE backend is
the one that is chosen by default. Turning off either cures it; nothing else changes anything.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from crashlab.demo.options import DemoOptions

GUILTY_MOE = "FLASHINFER_CUTLASS"
"""What ``auto`` chooses."""
KNOWN_VARIABLES = ("VLLM_LOGGING_LEVEL", "VLLM_SERVER_DEV_MODE", "VLLM_USE_FLASHINFER_SAMPLER")
"""Variables of vLLM that this server knows. For any other it warns and goes on, as vLLM does."""


def graphs(options: DemoOptions) -> str:
    """The CUDA graph mode in effect: eager execution switches graphs off."""
    return "NONE" if options.enforce_eager else options.cudagraph_mode


def moe(options: DemoOptions) -> str:
    """The MoE backend in effect."""
    return GUILTY_MOE if options.moe_backend == "auto" else options.moe_backend.upper()


def chance(config: Mapping[str, Any]) -> float:
    """The probability that a step faults; ``config`` holds the fields of :class:`DemoOptions`."""
    options = DemoOptions(**{name: config[name] for name in DemoOptions._fields if name in config})
    if not options.bug_every or graphs(options) == "NONE" or moe(options) != GUILTY_MOE:
        return 0.0
    return 1.0 / options.bug_every


def startup(
    lines: Iterable[str], options: DemoOptions, environment: Mapping[str, str], pids: Mapping[str, int]
) -> list[str]:
    """The recorded start-up lines with what the levers led to, in vLLM's words."""
    core = pids.get("EngineCore", 0)
    when = time.strftime("%m-%d %H:%M:%S")
    out = [
        f"(APIServer pid={pids.get('APIServer', 0)}) WARNING {when} [interface.py:1458] "
        f"Unknown vLLM environment variable detected: {name}"
        for name in sorted(environment)
        if name.startswith("VLLM_") and name not in KNOWN_VARIABLES
    ]
    out += [line for line in lines if "attention backend" not in line]
    config = (
        f"enforce_eager={options.enforce_eager}, kv_cache_dtype={options.kv_cache_dtype}, "
        f"enable_prefix_caching={options.prefix_caching}, "
        f"compilation_config={{'cudagraph_mode': <CUDAGraphMode.{graphs(options)}: 0>}}"
    )
    said = (
        f"[core.py:114] Initializing a V1 LLM engine with config: model='demo', {config}",
        f"[cuda.py:476] Using {options.attention_backend} attention backend out of potential backends: "
        "['FLASH_ATTN', 'TRITON_ATTN'].",
        f"[nvfp4.py:242] Using '{moe(options)}' NvFp4 MoE backend out of potential backends: "
        "['FLASHINFER_CUTLASS', 'MARLIN'].",
    )
    return out + [f"(EngineCore pid={core}) INFO {when} {words}" for words in said]
