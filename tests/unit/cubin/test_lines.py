"""Source positions in real tables of every kind."""

from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path

import pytest

from crashlab.cubin.image import Cubin
from crashlab.facts import InlineFrame, Source
from tests.support import corpus
from tests.unit.cubin.images import FOLDER, cubin, holding, raw, relocated

SHAPES = "/src/cubin/shapes.cu"
OPTIMISED = [
    "shapes_sm_75",
    "shapes_sm_80",
    "shapes_sm_90",
    "shapes_sm_90a",
    "shapes_sm_100f",
    "shapes_sm_120",
]
CASES = [
    (name, int(entry["expect"]["pc"], 16))
    for name, entry in corpus.manifest().items()
    if entry["expect"].get("pc") and entry["expect"]["function"]
]


@pytest.mark.parametrize(("dump", "pc"), CASES)
def test_file_and_line_of_every_real_fault(dump: str, pc: int) -> None:
    expect = corpus.manifest()[dump]["expect"]["source"]
    image = holding(dump, pc)
    assert image is not None
    source = image.source_at(pc)
    assert (None if source is None else [source.file, source.line]) == expect


def test_the_inline_chain_that_cuda_gdb_prints() -> None:
    """cuda-gdb 13: ``(faults.cu:27 in _Z13inlined_storePfxf inlined from faults.cu:31)``."""
    pc = int(corpus.manifest()["oob_store"]["expect"]["pc"], 16)
    image = holding("oob_store", pc)
    assert image is not None
    assert image.source_at(pc) == Source(
        "/src/gpu-faults/faults.cu",
        27,
        (InlineFrame("/src/gpu-faults/faults.cu", 31, "_Z13inlined_storePfxf"),),
    )


def test_a_header_function_inlined_into_a_spinning_kernel() -> None:
    image = holding("barrier_hang", 0x7FF7AB7A0BF0)
    assert image is not None
    source = image.source_at(0x7FF7AB7A0BF0)
    assert source is not None
    assert source.file.endswith("/include/device_atomic_functions.hpp")
    assert [(frame.line, frame.function) for frame in source.inlined] == [
        (50, "_ZN39_INTERNAL_e6db7df1_9_faults_cu_e08b7d199atomicAddEPii")
    ]


def line_of(text: str) -> int:
    lines = (FOLDER / "src" / "shapes.cu").read_text().splitlines()
    (number,) = (at for at, line in enumerate(lines, 1) if text in line)
    return number


@pytest.mark.parametrize("name", OPTIMISED)
def test_two_inlined_calls_deep_on_every_architecture(name: str) -> None:
    image = cubin(name)
    section = image.elf.find(".text.store_chain")
    assert section is not None
    sources = {image.lines.source(section, at) for at in range(0, section.size, 16)}
    assert (
        Source(
            SHAPES,
            line_of("line 13"),
            (
                InlineFrame(SHAPES, line_of("line 17"), "_Z4leafPff"),
                InlineFrame(SHAPES, line_of("line 26"), "_Z6branchPff"),
            ),
        )
        in sources
    )
    assert {source.file for source in sources if source is not None} == {SHAPES}


@pytest.mark.parametrize("name", ["shapes_sm_75_debug", "shapes_sm_90_debug", "shapes_sm_120_debug"])
def test_debug_images_have_calls_instead_of_chains(name: str) -> None:
    image = cubin(name)
    for kernel, text in (("_Z5innerPKfi", "p[i] * 2.0f"), ("_Z9templatedILi7EEvPdc", "flag * N")):
        section = image.elf.find(f".text.{kernel}")
        assert section is not None
        sources = [image.lines.source(section, at) for at in range(0, section.size, 16)]
        assert line_of(text) in {source.line for source in sources if source is not None}


def test_relocatable_code_has_its_lines_too() -> None:
    image = cubin("shapes_sm_90_object")
    section = image.elf.find(".text.store_chain")
    assert section is not None
    assert {r.file for r in image.lines.ranges(section)} == {SHAPES}


def test_the_map_of_a_section_covers_it_in_order() -> None:
    pc = int(corpus.manifest()["torch_triton"]["expect"]["pc"], 16)
    image = holding("torch_triton", pc)
    assert image is not None
    ranges = image.line_map(pc)
    assert ranges == tuple(sorted(ranges))
    assert all(a.end == b.start for a, b in pairwise(ranges))
    (own,) = (r for r in ranges if r.start <= pc < r.end)
    assert (own.file, own.line) == ("/src/gpu-faults/torch_faults.py", 10)
    section = image.section_at(pc)
    assert section is not None
    assert (ranges[0].start, ranges[-1].end) == (section.address, section.address + section.size)
    assert image.line_map(0x10) == ()


def test_an_image_without_a_table_has_no_lines() -> None:
    image = cubin("shapes_sm_90_plain")
    section = image.elf.find(".text.store_chain")
    assert section is not None
    assert image.lines.source(section, 0) is None
    assert image.lines.ranges(section) == ()


def test_without_relocations_the_addresses_in_the_table_are_used() -> None:
    """A copy of a relocated image whose relocation tables are blanked out."""
    pc = int(corpus.manifest()["stack"]["expect"]["pc"], 16)
    original = holding("stack", pc)
    assert original is not None
    data = bytearray(original.elf.view)
    start = struct.unpack_from("<Q", data, 0x28)[0]
    for number in original.elf.of_type(4):
        struct.pack_into("<I", data, start + 64 * number + 4, 1)
    image = Cubin(memoryview(data))
    assert image.source_at(pc) == original.source_at(pc)
    assert image.line_map(pc) == original.line_map(pc)


def test_the_same_section_is_decoded_once() -> None:
    name = "oob_store"
    pc = int(corpus.manifest()[name]["expect"]["pc"], 16)
    image = holding(name, pc)
    assert image is not None
    first = image.source_at(pc)
    left = image.lines._steps_left
    assert image.source_at(pc) == first
    assert image.lines._steps_left == left


def test_the_sources_of_the_images_are_shipped() -> None:
    assert Path(FOLDER / "src" / "Makefile").is_file()
    assert raw("shapes_sm_90")
    assert relocated("deep")
