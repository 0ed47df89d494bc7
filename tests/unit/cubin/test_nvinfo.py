"""Parameters and resources of kernels."""

from __future__ import annotations

import struct

import pytest

from crashlab.cubin.image import Cubin
from crashlab.cubin.nvinfo import KernelInfo, Parameter, attributes
from tests.unit.cubin.images import Part, assemble, cubin, relocated


def layout(image: Cubin, kernel: str) -> list[tuple[int, int, int]]:
    return [(p.ordinal, p.offset, p.size) for p in image.parameters(kernel)]


@pytest.mark.parametrize(
    "name", ["shapes_sm_75", "shapes_sm_80", "shapes_sm_90", "shapes_sm_120", "shapes_sm_90_debug"]
)
def test_parameters_come_in_the_order_of_the_source(name: str) -> None:
    image = cubin(name)
    assert layout(image, "store_chain") == [(0, 0, 8), (1, 8, 8), (2, 16, 4), (3, 20, 16)]
    assert layout(image, "_Z9templatedILi7EEvPdc") == [(0, 0, 8), (1, 8, 1)]
    assert image.parameters("missing") == ()


@pytest.mark.parametrize("name", ["wide_sm_90", "wide_sm_120"])
def test_parameters_of_30000_bytes(name: str) -> None:
    image = cubin(name)
    assert layout(image, "wide") == [(0, 0, 30000), (1, 30000, 8), (2, 30008, 2)]
    info = image.kernel_info("wide")
    assert info.parameter_bytes == 30010
    assert info.max_threads == (128, 1, 1)


def test_pointers_are_marked_where_the_compiler_does_it() -> None:
    assert [p.pointer for p in cubin("shapes_sm_120").parameters("store_chain")] == [True, True, None, None]
    assert [p.pointer for p in cubin("wide_sm_120").parameters("wide")] == [None, True, None]
    assert [p.pointer for p in cubin("shapes_sm_75").parameters("store_chain")] == [None] * 4


def test_resources_of_a_kernel_as_built() -> None:
    assert cubin("shapes_sm_75").kernel_info("store_chain") == KernelInfo(
        registers=8,
        max_registers=255,
        parameter_base=0x160,
        parameter_bytes=36,
        shared_bytes=256,
        constant_bytes=0x160 + 36,
        frame_bytes=0,
        stack_bytes=0,
    )
    debug = cubin("shapes_sm_90_debug").kernel_info("store_chain")
    assert (debug.parameter_base, debug.frame_bytes) == (0x210, 16)
    assert cubin("shapes_sm_75").kernel_info("missing") == KernelInfo()


def test_resources_of_kernels_of_a_real_dump() -> None:
    kernel = "cudnn_generated_fort_native_sm120_matMul_pointwise_pointwise_knob_3_128x128x128_0_0"
    (image,) = (i for i in relocated("seed_sm120") if i.symbols.find(kernel))
    info = image.kernel_info(kernel)
    assert (info.registers, info.shared_bytes, info.parameter_base) == (44, 1024, 0x380)
    assert layout(image, kernel) == [(0, 0, 8), (1, 8, 8), (2, 16, 8), (3, 24, 4)]


def made(data: bytes) -> Cubin:
    return Cubin(memoryview(assemble([Part(".nv.info.k", 0x70000000, data)])))


def test_entries_that_are_cut_off_end_the_list() -> None:
    whole = struct.pack("<BBHIHHI", 4, 0x17, 12, 0, 0, 0, 8 << 18)
    assert made(whole).parameters("k") == (Parameter(0, 0, 8),)
    assert made(whole + whole[:-1]).parameters("k") == (Parameter(0, 0, 8),)
    assert made(whole[:3]).parameters("k") == ()
    short = struct.pack("<BBHI", 4, 0x17, 4, 0)
    assert made(short + whole).parameters("k") == (Parameter(0, 0, 8),)


def test_entries_of_all_formats_are_told_apart() -> None:
    data = struct.pack("<BBHBBHBBHBBHI", 1, 0x2A, 0, 2, 0x4C, 1, 3, 0x1B, 255, 4, 0x36, 4, 8)
    assert list(attributes(made(data).elf, ".nv.info.k")) == [
        (0x2A, 0, b""),
        (0x4C, 1, b""),
        (0x1B, 255, b""),
        (0x36, 4, struct.pack("<I", 8)),
    ]


def test_thousands_of_parameters_are_given_up() -> None:
    rows = b"".join(struct.pack("<BBHIHHI", 4, 0x17, 12, 0, n, 0, 8 << 18) for n in range(5000))
    assert len(made(rows).parameters("k")) == 4096
