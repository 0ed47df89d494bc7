"""The section table: what is read, and what is refused."""

from __future__ import annotations

import struct

import pytest

from crashlab.cubin.elf import SHT_NOBITS, Elf, c_string, words
from crashlab.errors import CrashlabError, MalformedCubin
from tests.unit.cubin.images import Part, assemble, built, raw

TEXT = Part(".text.k", 1, b"\xaa" * 64, flags=6, address=0x7000)


def elf(parts: list[Part], **how: int | bool) -> Elf:
    return Elf(memoryview(assemble(parts, **how)))  # type: ignore[arg-type]


def patched(at: int, layout: str, value: int) -> memoryview:
    image = bytearray(assemble([TEXT]))
    struct.pack_into(layout, image, at, value)
    return memoryview(image)


@pytest.mark.parametrize("name", built())
def test_every_section_of_a_built_image_has_its_name_and_its_bytes(name: str) -> None:
    image = Elf(memoryview(raw(name)))
    sections = image.sections()
    assert [section.number for section in sections] == list(range(image.count))
    assert all(section.name for section in sections[1:])
    for section in sections[1:]:
        assert len(image.data(section)) == (0 if section.type == SHT_NOBITS else section.size)
        first = image.find(section.name)
        assert first is not None
        assert first.number <= section.number


def test_a_name_that_ends_another_name_is_found_as_itself() -> None:
    image = elf([Part(".rela.debug_line", 4, b""), Part(".debug_line", 1, b"x")])
    section = image.find(".debug_line")
    assert section is not None
    assert section.number == 2
    assert image.find("debug_line") is None
    assert image.find("") is not None  # section 0 has the empty name


def test_counts_too_big_for_the_header_stand_in_section_0() -> None:
    image = elf([TEXT, Part(".b", 1, b"b")], wide=True)
    assert image.count == 4
    assert [section.name for section in image.sections()] == ["", ".text.k", ".b", ".shstrtab"]


def test_more_than_65279_sections_are_numbered_through() -> None:
    parts = [Part("", 1, b"") for _ in range(66_000)]
    parts[65_900] = TEXT
    image = elf(parts, wide=True)
    assert image.count == 66_002
    assert image.code_section(0x7010) == 65_901
    section = image.find(".text.k")
    assert section is not None
    assert section.number == 65_901


def test_an_address_belongs_to_the_loaded_code_section_around_it() -> None:
    image = elf(
        [
            TEXT,
            Part(".text.unloaded", 1, b"\0" * 64, flags=6),
            Part(".nv.global", SHT_NOBITS, 0x1000, flags=3, address=0x9000),
        ]
    )
    assert image.code_section(0x6FFF) is None
    assert image.code_section(0x7000) == 1
    assert image.code_section(0x703F) == 1
    assert image.code_section(0x7040) is None
    assert image.code_section(0x10) is None  # unloaded code lies at address 0
    assert image.code_section(0x9010) is None  # data is no code


def test_of_overlapping_sections_the_one_that_starts_last_holds_the_address() -> None:
    outer = Part(".text.outer", 1, b"\0" * 256, flags=6, address=0x7000)
    inner = Part(".text.inner", 1, b"\0" * 16, flags=6, address=0x7020)
    image = elf([outer, inner, Part(".text.far", 1, b"\0" * 16, flags=6, address=0x8000)])
    assert image.code_section(0x7024) == 2
    assert image.code_section(0x7040) == 1
    assert image.code_section(0x8001) == 3


def test_a_compressed_or_missing_section_has_no_data_by_name() -> None:
    image = elf([Part(".debug_line", 1, b"zipped", flags=0x800), Part(".empty", 1, b"")])
    assert image.named_data(".debug_line") is None
    assert image.named_data(".empty") is None
    assert image.named_data(".absent") is None


@pytest.mark.parametrize(
    ("view", "told"),
    [
        (memoryview(b""), "ELF header"),
        (memoryview(b"MZ" + bytes(100)), "ELF header"),
        (patched(4, "<B", 1), "64-bit"),
        (patched(5, "<B", 2), "little-endian"),
        (patched(18, "<H", 62), "machine 62"),
        (patched(0x3A, "<H", 40), "outside the image"),
        (patched(0x28, "<Q", 1 << 63), "outside the image"),
        (patched(0x3C, "<H", 60_000), "60000 sections"),
    ],
)
def test_a_header_that_cannot_be_used_is_named(view: memoryview, told: str) -> None:
    with pytest.raises(MalformedCubin, match=told) as caught:
        Elf(view)
    assert isinstance(caught.value, CrashlabError)


def test_an_image_without_a_section_table_has_no_sections() -> None:
    image = Elf(patched(0x28, "<Q", 0))
    assert image.count == 0
    assert image.code_section(0x7000) is None
    assert image.find(".text.k") is None


def test_a_section_outside_the_image_is_refused_when_its_bytes_are_asked_for() -> None:
    image = elf([Part(".a", 1, b"a")])
    section = image.section(1)
    with pytest.raises(MalformedCubin, match=r"\.a"):
        image.data(section._replace(size=1 << 40))
    with pytest.raises(MalformedCubin, match=r"\.a"):
        image.data(section._replace(offset=1 << 63))
    with pytest.raises(MalformedCubin, match="section 9 of 3"):
        image.section(9)


def test_a_name_table_outside_the_table_leaves_sections_without_names() -> None:
    image = Elf(patched(0x3E, "<H", 77))
    assert [section.name for section in image.sections()] == ["", "", ""]


def test_names_end_at_the_terminator_the_table_or_64_kib() -> None:
    assert c_string(memoryview(b"ab\0cd"), 0) == "ab"
    assert c_string(memoryview(b"ab\0cd"), 3) == "cd"
    assert c_string(memoryview(b"ab"), 2) is None
    assert c_string(memoryview(b"ab"), -1) is None
    assert c_string(memoryview(b"x" * 300 + b"\0"), 0) == "x" * 300
    assert len(c_string(memoryview(b"x" * 1_000_000), 0) or "") <= 1 << 17
    assert c_string(memoryview(b"\xff\0"), 0) == "\\xff"


def test_words_are_little_endian_on_every_host(monkeypatch: pytest.MonkeyPatch) -> None:
    view = memoryview(bytes(range(1, 18)))
    expected = [0x0807060504030201, 0x100F0E0D0C0B0A09]
    assert words(view).tolist() == expected
    monkeypatch.setattr("sys.byteorder", "big")
    swapped = [int.from_bytes(value.to_bytes(8, "little"), "big") for value in expected]
    assert words(view).tolist() == swapped  # what this host reads is what the other one would have to swap
