"""PyTorch's own kernels: dangling operands, and indices out of range (device-side asserts)."""

from __future__ import annotations

import torch
from torch.nn import functional

from .harness import dangling, fact, raw, replay_dangling, scene


@scene
def aten_add() -> None:
    good = torch.ones((4, 4096), device="cuda")
    torch.add(good, good)  # loads the kernel before memory is freed, not into the hole that this leaves
    torch.add(dangling((4096, 4096), "fp32")[:4], good)


@scene
def aten_sum() -> None:
    torch.sum(torch.ones((16, 4096), device="cuda"), dim=1)
    torch.sum(dangling((4096, 4096), "fp32")[:16], dim=1)


@scene
def graph_dangling() -> None:
    memory, tensor = raw((4096, 4096), "fp32")
    out = torch.zeros((4, 4096), device="cuda")
    replay_dangling(memory, lambda: torch.mul(tensor[:4], 2.0, out=out))


def bad_index(value: int) -> torch.Tensor:
    index = torch.arange(64, device="cuda") % 8
    index[37] = value
    fact("bad_element", 37)
    fact("bad_index", value)
    return index


@scene
def gather_assert() -> None:
    torch.gather(torch.ones((64, 8), device="cuda"), 1, bad_index(1000).reshape(64, 1))


@scene
def index_assert() -> None:
    torch.ones((8, 16), device="cuda")[bad_index(1000)]


@scene
def embedding_assert() -> None:
    functional.embedding(bad_index(1000), torch.ones((8, 256), device="cuda"))


@scene
def cross_entropy_assert() -> None:
    functional.cross_entropy(torch.ones((64, 8), device="cuda"), bad_index(8))
