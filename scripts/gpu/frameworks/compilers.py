"""Kernels made by torch.compile and by CuPy."""

from __future__ import annotations

import os

import torch
from torch.nn import functional

from .harness import MIB, fact, raw, replay_dangling, scene, unavailable


@scene
def inductor_dangling() -> None:
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

    def epilogue(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return functional.gelu(left * right) + 1.0

    compiled = torch.compile(epilogue)
    memory, left = raw((4096, 4096), "fp32")
    right = torch.ones((4, 4096), device="cuda")
    replay_dangling(memory, lambda: compiled(left[:4], right))


@scene
def cupy_dangling() -> None:
    try:
        import cupy
    except ImportError as missing:
        unavailable(missing)
    pointer = cupy.cuda.runtime.malloc(64 * MIB)
    memory = cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(pointer, 64 * MIB, None), 0)
    bad = cupy.ndarray((4096,), dtype=cupy.float32, memptr=memory)
    out = cupy.empty_like(bad)
    cupy.cuda.runtime.free(pointer)
    fact("buffer", pointer)
    fact("bad_address", pointer)
    cupy.add(bad, cupy.float32(1), out=out)
    cupy.cuda.runtime.deviceSynchronize()
