"""Which function holds a PC."""

from __future__ import annotations

import struct
import time

import pytest

from crashlab.cubin.image import Cubin
from crashlab.errors import MalformedCubin
from tests.support import corpus
from tests.support.big_cubin import cubin_with_symbols
from tests.unit.cubin.images import Part, assemble, cubin, holding, symbol

CASES = [
    (name, int(pc, 16))
    for name in corpus.names()
    if corpus.manifest()[name]["expect"]["function"]
    for pc in corpus.manifest()[name]["expect"]["pcs"]
]


@pytest.mark.parametrize(("dump", "pc"), CASES)
def test_function_kernel_and_offset_of_every_real_fault(dump: str, pc: int) -> None:
    expect = corpus.manifest()[dump]["expect"]
    image = holding(dump, pc)
    assert image is not None
    hit = image.symbol_at(pc)
    assert hit is not None
    assert hit.function.mangled == expect["function"]
    if hit.kernel is None:  # a device function with a section of its own: only the grid knows the kernel
        assert hit.section == f".text.{expect['function']}"
        return
    assert hit.kernel.mangled == expect["kernel"]
    assert not hit.guessed
    assert hit.function.start + hit.offset == pc
    if expect["function_offset"] is not None and expect["pc"] == hex(pc):
        assert hit.offset == expect["function_offset"]


def test_a_pc_in_no_image_is_in_no_image() -> None:
    assert holding("badpc", int(corpus.manifest()["badpc"]["expect"]["pc"], 16)) is None
    assert cubin("shapes_sm_90").symbol_at(0x1000) is None


def hand_made(symbols: bytes, names: bytes, *extra: Part, address: int = 0x7000) -> Cubin:
    return Cubin(
        memoryview(
            assemble(
                [
                    Part(".text.k", 1, bytes(range(256)) * 2, flags=6, address=address),
                    Part(".symtab", 2, symbols, link=3, entsize=24),
                    Part(".strtab", 3, names),
                    *extra,
                ]
            )
        )
    )


NAMES = b"\0k\0$k$inner\0.text.k\0"
KERNEL = symbol(1, 1, 0x7000, 0x180, info=0x12, other=0x10)
INNER = symbol(3, 1, 0x7040, 0x20)


def test_the_innermost_symbol_is_the_function_and_the_entry_around_it_the_kernel() -> None:
    image = hand_made(symbol(0, 0, 0, 0, info=0) + INNER + KERNEL, NAMES)
    hit = image.symbol_at(0x7048)
    assert hit is not None
    assert (hit.function.mangled, hit.offset, hit.section) == ("$k$inner", 8, ".text.k")
    assert hit.kernel is not None
    assert (hit.kernel.mangled, hit.kernel.start, hit.kernel.size) == ("k", 0x7000, 0x180)
    before = image.symbol_at(0x703F)
    assert before is not None
    assert before.function == before.kernel
    after = image.symbol_at(0x7060)
    assert after is not None
    assert after.function.mangled == "k"


def test_padding_and_stripped_images_are_named_by_their_section() -> None:
    image = hand_made(KERNEL, NAMES)
    hit = image.symbol_at(0x71F0)  # behind the end of k, inside its section
    assert hit is not None
    assert (hit.function.mangled, hit.offset, hit.guessed) == ("k", 0x1F0, True)
    assert hit.kernel is not None

    stripped = hand_made(b"", b"")
    hit = stripped.symbol_at(0x7010)
    assert hit is not None
    assert (hit.function.mangled, hit.offset, hit.guessed, hit.kernel) == ("k", 0x10, True, None)

    with_bank = hand_made(b"", b"", Part(".nv.constant0.k", 1, b"1234"))
    hit = with_bank.symbol_at(0x7010)
    assert hit is not None
    assert hit.kernel is not None
    assert hit.kernel.mangled == "k"


def test_a_device_function_in_its_own_section_has_no_kernel() -> None:
    image = hand_made(symbol(1, 1, 0x7000, 0x200), NAMES)
    hit = image.symbol_at(0x7010)
    assert hit is not None
    assert (hit.function.mangled, hit.kernel) == ("k", None)


def test_an_alias_of_a_kernel_does_not_hide_it() -> None:
    image = hand_made(symbol(3, 1, 0x7000, 0x180) + KERNEL, NAMES)
    hit = image.symbol_at(0x7000)
    assert hit is not None
    assert hit.kernel is not None
    assert hit.kernel.mangled == "k"


def test_symbols_without_a_name_a_section_or_a_function_type_are_passed_over() -> None:
    nameless = symbol(0, 1, 0x7000, 0x10)
    foreign = symbol(3, 9, 0x7000, 0x10)
    undefined = symbol(3, 0, 0x7000, 0x10)
    section = symbol(12, 1, 0x7000, 0x10, info=3)
    image = hand_made(nameless + foreign + undefined + section + KERNEL, NAMES)
    hit = image.symbol_at(0x7008)
    assert hit is not None
    assert hit.function.mangled == "k"
    assert [function.mangled for function in image.functions()] == ["k"]
    assert image.symbols.kernel_count() == 1


def test_section_numbers_beyond_16_bits_come_from_the_extended_table() -> None:
    filler = [Part("", 1, b"") for _ in range(65_300)]
    parts = [
        Part(".symtab", 2, symbol(1, 0xFFFF, 0x7000, 0x40, other=0x10), link=2, entsize=24),
        Part(".strtab", 3, NAMES),
        Part(".symtab_shndx", 18, struct.pack("<I", 4 + 65_300), link=1),
        *filler,
        Part(".text.k", 1, bytes(64), flags=6, address=0x7000),
    ]
    image = Cubin(memoryview(assemble(parts, wide=True)))
    hit = image.symbol_at(0x7020)
    assert hit is not None
    assert (hit.function.mangled, hit.guessed) == ("k", False)


def test_a_function_is_found_by_its_exact_name() -> None:
    image = cubin("shapes_sm_90")
    found = image.symbols.find("store_chain")
    assert found is not None
    assert found.entry
    assert image.symbols.find("tore_chain") is None
    assert image.symbols.find("") is None
    inner = image.symbols.find("$_Z5callsPfPKf$_Z5innerPKfi")
    assert inner is not None
    assert (inner.start, inner.entry) == (0x90, False)


@pytest.mark.parametrize("name", ["shapes_sm_75", "shapes_sm_90", "shapes_sm_120", "shapes_sm_90_debug"])
def test_all_kernels_are_listed_and_counted(name: str) -> None:
    image = cubin(name)
    kernels = {kernel.mangled for kernel in image.kernels()}
    assert kernels == {"store_chain", "_Z9templatedILi7EEvPdc", "_Z5callsPfPKf", "_Z7checkedPi"}
    assert image.symbols.kernel_count() == len(kernels)


def test_code_of_a_function_is_its_part_of_the_section() -> None:
    image = hand_made(INNER + KERNEL, NAMES)
    assert image.code_of("missing") is None
    inner = image.code_of("$k$inner")
    assert inner is not None
    start, code = inner
    assert (start, bytes(code)) == (0x7040, bytes(range(0x40, 0x60)))
    kernel = image.symbols.find("k")
    assert kernel is not None
    assert len(image.code_of(kernel._replace(size=0))[1]) == 512  # type: ignore[index]
    assert image.code_of(kernel._replace(start=0x9000)) is None


def test_the_symbols_of_an_image_as_built_count_from_their_section() -> None:
    image = cubin("shapes_sm_90_debug")
    found = image.code_of("store_chain")
    assert found is not None
    start, code = found
    assert start == 0
    assert len(code) % 128 == 0


def test_damaged_tables_are_refused() -> None:
    broken = Cubin(memoryview(assemble([Part(".symtab", 2, KERNEL, entsize=16)])))
    with pytest.raises(MalformedCubin, match="symbols of 16 bytes"):
        list(broken.functions())
    image = hand_made(KERNEL, NAMES)
    with pytest.raises(MalformedCubin, match="symbol 7 of 1"):
        image.symbols.row(7)
    crowd = hand_made(KERNEL * 70_000, NAMES)
    with pytest.raises(MalformedCubin, match="more than 65536 symbols"):
        crowd.symbol_at(0x7000)


def test_half_a_row_at_the_end_is_left_out() -> None:
    image = hand_made(KERNEL + b"half", NAMES)
    assert image.symbols.count == 1


def test_a_lookup_among_200000_symbols_takes_milliseconds() -> None:
    image = Cubin(memoryview(cubin_with_symbols(200_000, address=0x7F00_0000_0000)))
    started = time.perf_counter()
    hit = image.symbol_at(0x7F00_0000_0010)
    took = time.perf_counter() - started
    assert hit is not None
    assert hit.function.mangled == "k"
    assert took < 0.1  # 2 ms on an idle machine; building 200,000 objects takes 0.3 s
