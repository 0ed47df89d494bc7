"""Matrix products, attention and convolution with an operand whose memory was given back to the driver.

Operands are whole pages, so that freeing them unmaps them; few of their rows take part, so that dumps stay small.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from .harness import KINDS, dangling, scene


def warm_library() -> None:
    """cuBLAS makes its handle and workspace before memory is freed, not in the hole that this leaves."""
    small = torch.ones((64, 64), device="cuda", dtype=torch.float16)
    torch.mm(small, small)


def product(kind: str) -> None:
    good = torch.ones((4096, 256), device="cuda").to(KINDS[kind][2])
    warm_library()
    torch.mm(dangling((4096, 4096), kind)[:256], good)


@scene
def cublas_fp32() -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    product("fp32")


@scene
def cublas_tf32() -> None:
    torch.backends.cuda.matmul.allow_tf32 = True
    product("fp32")


@scene
def cublas_fp16() -> None:
    product("fp16")


@scene
def cublas_bf16() -> None:
    product("bf16")


@scene
def cublas_int8() -> None:
    good = torch.ones((4096, 256), device="cuda", dtype=torch.int8)
    warm_library()
    torch._int_mm(dangling((4096, 4096), "int8")[:256], good)


@scene
def cublas_fp8() -> None:
    one = torch.ones((), device="cuda")
    good = torch.ones((256, 4096), device="cuda").to(torch.float8_e4m3fn)
    warm_library()
    bad = dangling((4096, 4096), "fp8")[:256]
    torch._scaled_mm(bad, good.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def attention(backend: str) -> None:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    shape = (1, 2, 256, 64)
    query = torch.ones(shape, device="cuda", dtype=torch.float16)
    value = torch.ones(shape, device="cuda", dtype=torch.float16)
    with sdpa_kernel(getattr(SDPBackend, backend)):
        # Once with good operands: cuDNN compiles and loads its kernel before memory is freed.
        functional.scaled_dot_product_attention(query, value, value, is_causal=True)
        key = dangling((2, 16, 2048, 64), "fp16")[:1, :2, :256]
        functional.scaled_dot_product_attention(query, key, value, is_causal=True)


@scene
def sdpa_flash() -> None:
    attention("FLASH_ATTENTION")


@scene
def sdpa_efficient() -> None:
    attention("EFFICIENT_ATTENTION")


@scene
def sdpa_cudnn() -> None:
    attention("CUDNN_ATTENTION")


@scene
def cudnn_convolution() -> None:
    weight = torch.ones((256, 256, 3, 3), device="cuda", dtype=torch.float16)
    weight = weight.to(memory_format=torch.channels_last)
    functional.conv2d(torch.ones((1, 256, 8, 8), device="cuda", dtype=torch.float16), weight, padding=1)
    image = dangling((32, 56, 56, 256), "fp16")[:1].permute(0, 3, 1, 2)
    functional.conv2d(image, weight, padding=1)
