"""Triton kernels: masks, 32-bit offsets, pipelined copies, descriptors, atomics, asserts, a hang."""

import torch
import triton
import triton.language as tl

from .harness import FAR, dangling, fact, raw, replay_dangling, scene


@triton.jit
def masked_store(source, out, elements, bad, beyond, block: tl.constexpr):
    offsets = tl.program_id(0) * block + tl.arange(0, block)
    inside = offsets < elements
    value = tl.load(source + offsets, mask=inside)
    shift = tl.where(offsets == bad, beyond, 0)
    tl.store(out + offsets + shift, value * tl.sigmoid(value), mask=inside)


@scene
def triton_masked_store() -> None:
    source = torch.ones(4096, device="cuda")
    out = torch.zeros(4096, device="cuda")
    fact("elements", 1000)
    fact("bad_element", 990)
    fact("bad_address", out.data_ptr() + 4 * (990 + FAR))
    masked_store[(2,)](source, out, 1000, 990, FAR, block=512)


@triton.jit
def table_lookup(table, indices, out, block: tl.constexpr):
    offsets = tl.program_id(0) * block + tl.arange(0, block)
    row = tl.load(indices + offsets)
    tl.store(out + offsets, tl.load(table + row))


@scene
def triton_bad_index() -> None:
    table = torch.ones(4096, device="cuda")
    indices = torch.arange(512, device="cuda")
    indices[300] = FAR
    fact("bad_element", 300)
    fact("bad_address", table.data_ptr() + 4 * FAR)
    table_lookup[(2,)](table, indices, torch.zeros(512, device="cuda"), block=256)


@triton.jit
def int32_offsets(matrix, stride, first_row, block: tl.constexpr):
    row = first_row + tl.program_id(0)
    tl.store(matrix + row * stride + tl.arange(0, block), 1)


@scene
def triton_int32_overflow() -> None:
    matrix = torch.empty((40000, 65536), device="cuda", dtype=torch.uint8)
    fact("buffer", matrix.data_ptr())
    fact("first_bad_row", 32768)
    fact("bad_address", matrix.data_ptr() - 2**31)
    int32_offsets[(16,)](matrix, 65536, 32760, block=256)


@triton.jit
def tiled_product(a, b, c, size, block: tl.constexpr):
    rows = tl.program_id(0) * block + tl.arange(0, block)
    columns = tl.program_id(1) * block + tl.arange(0, block)
    inner = tl.arange(0, 64)
    total = tl.zeros((block, block), dtype=tl.float32)
    for step in range(0, size, 64):
        left = tl.load(a + rows[:, None] * size + (step + inner)[None, :])
        right = tl.load(b + (step + inner)[:, None] * size + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * size + columns[None, :], total)


@scene
def triton_dot_dangling() -> None:
    good = torch.ones((2048, 2048), device="cuda", dtype=torch.float16)
    out = torch.zeros((2048, 2048), device="cuda")
    memory, bad = raw((2048, 2048), "fp16")
    replay_dangling(
        memory,
        lambda: tiled_product[(2, 2)](bad, good, out, 2048, block=128, num_stages=3, num_warps=8),
    )


@triton.jit
def descriptor_load(matrix, out):
    tile = matrix.load([0, 0])
    offsets = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    tl.store(out + offsets, tile)


@scene
def triton_tma_dangling() -> None:
    from triton.tools.tensor_descriptor import TensorDescriptor

    out = torch.zeros(1024, device="cuda")
    matrix = TensorDescriptor.from_tensor(dangling((4096, 4096), "fp32"), [32, 32])
    descriptor_load[(1,)](matrix, out)


@triton.jit
def histogram(indices, counts, block: tl.constexpr):
    offsets = tl.arange(0, block)
    tl.atomic_add(counts + tl.load(indices + offsets), 1)


@scene
def triton_atomic_oob() -> None:
    counts = torch.zeros(1024, device="cuda", dtype=torch.int32)
    indices = torch.arange(256, device="cuda")
    indices[200] = FAR
    fact("bad_element", 200)
    fact("bad_address", counts.data_ptr() + 4 * FAR)
    histogram[(1,)](indices, counts, block=256)


@triton.jit
def asserted_lookup(indices, out, limit, block: tl.constexpr):
    offsets = tl.arange(0, block)
    row = tl.load(indices + offsets)
    tl.device_assert(row < limit, "row is outside the table")
    tl.store(out + offsets, row)


@scene
def triton_assert() -> None:
    indices = torch.arange(128, device="cuda")
    fact("bad_element", "100-127")
    asserted_lookup[(1,)](indices, torch.zeros_like(indices), 100, block=128, debug=True)


@triton.jit
def spin_on_flag(flag, out):
    seen = tl.load(flag, volatile=True)
    while seen == 0:
        seen = tl.load(flag, volatile=True)
    tl.store(out, 1)


@scene
def triton_hang() -> None:
    flag = torch.zeros(2, device="cuda", dtype=torch.int32)
    fact("flag", hex(flag.data_ptr()))
    spin_on_flag[(4,)](flag, flag[1:])
    print("READY", flush=True)
