"""Damaged images: an answer or MalformedCubin, in time, whatever the bytes."""

from __future__ import annotations

import struct
import time
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crashlab.cubin.image import Cubin
from crashlab.errors import MalformedCubin
from tests.support import corpus
from tests.unit.cubin.images import SECTION, holding, raw

PC = int(corpus.manifest()["deep"]["expect"]["pc"], 16)
LOADED = holding("deep", PC)
assert LOADED is not None
SAMPLES = {
    "relocated": bytes(LOADED.elf.view),
    "sm_75": raw("shapes_sm_75"),
    "sm_120": raw("shapes_sm_120"),
    "debug": raw("shapes_sm_90_debug"),
    "object": raw("shapes_sm_90_object"),
}
FEW = settings(max_examples=150, deadline=5000, suppress_health_check=[HealthCheck.too_slow])


def ask_everything(data: bytes | bytearray) -> None:
    """Every question that the other rooms ask; each may fail by itself."""
    try:
        image = Cubin(memoryview(data))
    except MalformedCubin:
        return
    sections = [2, 35, 43]
    questions = [
        lambda: image.contains(PC),
        lambda: image.symbol_at(PC),
        lambda: image.source_at(PC),
        lambda: image.line_map(PC),
        lambda: image.code_window(PC),
        lambda: image.arch,
        lambda: image.compiler,
        lambda: image.toolchain,
        lambda: list(image.functions()),
        lambda: list(image.kernels()),
        lambda: image.symbols.kernel_count(),
        lambda: image.elf.sections(),
        lambda: [image.code_of(name) for name in ("store_chain", "_Z9deep_callPKfPfx")],
        lambda: [image.parameters(name) for name in ("store_chain", "_Z9deep_callPKfPfx")],
        lambda: [image.kernel_info(name) for name in ("store_chain", "_Z9deep_callPKfPfx")],
        lambda: [image.symbols.at(image.elf.section(n), 0x20) for n in sections],
        lambda: [image.lines.source(image.elf.section(n), 0x20) for n in sections],
        lambda: [image.lines.ranges(section) for section in image.elf.sections() if section.flags & 4],
    ]
    for question in questions:
        with suppress(MalformedCubin):
            question()


@pytest.mark.parametrize("sample", SAMPLES)
def test_whole_images_answer_everything(sample: str) -> None:
    ask_everything(SAMPLES[sample])


@pytest.mark.parametrize("sample", SAMPLES)
def test_images_cut_off_at_every_section(sample: str) -> None:
    data = SAMPLES[sample]
    image = Cubin(memoryview(data))
    table = struct.unpack_from("<Q", data, 0x28)[0]
    rows = bytes(image.elf._table)
    for section in image.elf.sections():
        for end in (section.offset, section.offset + 1, section.offset + section.size):
            ask_everything(data[:end])
            moved = bytearray(data[: min(end, table)] + rows)  # the same with the table still in place
            struct.pack_into("<Q", moved, 0x28, len(moved) - len(rows))
            ask_everything(moved)


@FEW
@given(
    st.sampled_from(sorted(SAMPLES)),
    st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 7)), min_size=1, max_size=20),
)
def test_flipped_bits(sample: str, flips: list[tuple[int, int]]) -> None:
    data = bytearray(SAMPLES[sample])
    for at, bit in flips:
        data[at % len(data)] ^= 1 << bit
    ask_everything(data)


@FEW
@given(
    st.sampled_from(sorted(SAMPLES)),
    st.integers(0, 200),
    st.integers(0, 9),
    st.one_of(st.integers(0, 1 << 17), st.integers(0, (1 << 64) - 1)),
)
def test_section_rows_that_lie(sample: str, number: int, field: int, value: int) -> None:
    data = bytearray(SAMPLES[sample])
    table, count = struct.unpack_from("<Q", data, 0x28)[0], struct.unpack_from("<H", data, 0x3C)[0]
    at = table + 64 * (number % count)
    row = list(SECTION.unpack_from(data, at))
    row[field] = value & (0xFFFFFFFF if field in (0, 1, 6, 7) else (1 << 64) - 1)
    SECTION.pack_into(data, at, *row)
    ask_everything(data)


@FEW
@given(st.sampled_from(sorted(SAMPLES)), st.integers(0x10, 0x3F), st.binary(min_size=1, max_size=8))
def test_headers_that_lie(sample: str, at: int, junk: bytes) -> None:
    data = bytearray(SAMPLES[sample])
    data[at : at + len(junk)] = junk
    ask_everything(data)


@FEW
@given(
    st.sampled_from(sorted(SAMPLES)),
    st.sampled_from(
        [".debug_line", ".symtab", ".rela.debug_line", ".debug_str", ".nv.info", ".note.nv.tkinfo"]
    ),
    st.data(),
)
def test_single_sections_full_of_junk(sample: str, name: str, data: st.DataObject) -> None:
    image = bytearray(SAMPLES[sample])
    section = Cubin(memoryview(bytes(image))).elf.find(name)
    if section is None or not section.size:
        return
    at = section.offset + data.draw(st.integers(0, section.size - 1))
    junk = data.draw(st.binary(min_size=1, max_size=64))[: section.offset + section.size - at]
    image[at : at + len(junk)] = junk
    ask_everything(image)


def test_100000_sections_that_all_hold_the_pc_are_searched_in_time() -> None:
    row = SECTION.pack(0, 1, 6, 0x7000, 0, 64, 0, 0, 0, 0)
    count = 100_000
    header = bytearray(SAMPLES["sm_75"][:64])
    struct.pack_into("<Q", header, 0x28, 64)
    struct.pack_into("<HHH", header, 0x3A, 64, 0, 0)
    first = SECTION.pack(0, 0, 0, 0, 0, count, 0, 0, 0, 0)
    started = time.monotonic()
    ask_everything(bytes(header) + first + row * (count - 1))
    assert time.monotonic() - started < 60
